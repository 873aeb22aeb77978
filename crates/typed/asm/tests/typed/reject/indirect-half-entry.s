# expect: read of 4 bytes.*image
# Half of an entry cannot be read.
.func f (any, any)
        mov     t(%rip), %eax
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
