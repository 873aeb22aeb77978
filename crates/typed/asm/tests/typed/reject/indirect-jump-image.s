# expect: expected an entry of a call or jump table
# The address of the text is no place.
.func f (any, any)
        lea     f(%rip), %rax
        jmp     __x86_indirect_thunk_rax
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
