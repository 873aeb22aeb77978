# expect: read of 16 bytes.*image
# Entries are no data.
.func f (any, any)
        movups  t(%rip), %xmm0
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
