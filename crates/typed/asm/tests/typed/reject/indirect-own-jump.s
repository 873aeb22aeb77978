# expect: expected a thunk
# The file says that it has no indirect jumps.
.func f (any, any)
        mov     t(%rip), %rax
        mov     $1, %edi
        jmp     *%rax
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
