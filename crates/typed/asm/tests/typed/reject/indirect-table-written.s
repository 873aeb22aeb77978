# expect: write of 8 bytes.*image
# Tables do not change.
.func f (any, any)
        mov     %rdi, t(%rip)
        .return
.func g (u32) -> any
        xor     %eax, %eax
        .return
.func h (u32) -> any
        xor     %eax, %eax
        .return
.calltable t (u32) -> any: g, h, g, h
.calltable other (): e
.func e ()
        .return
