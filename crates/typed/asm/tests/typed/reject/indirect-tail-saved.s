# expect: rbx: expected its value at entry
# An indirect tail call restores nothing.
.func f (any, any)
        mov     %rdi, %rbx
        mov     t(%rip), %rax
        mov     $1, %edi
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
