# expect: expected \d+ bytes of data, found
# An entry is no data.
.func f (any, any)
        mov     t(%rip), %rax
        mov     %rax, 0x10000000
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
