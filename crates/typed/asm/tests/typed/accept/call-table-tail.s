# An indirect tail call, its index compared.
.func f (u32) -> any
        cmp     $2, %edi
        jae     out
        lea     t(%rip), %r11
        mov     (%r11,%rdi,8), %r11
        jmp     __x86_indirect_thunk_r11
out:    xor     %eax, %eax
        .return
.calltable t (u32) -> any: g, h
.func g (u32) -> any
        lea     1(%rdi), %rax
        .return
.func h (u32) -> any
        lea     -1(%rdi), %rax
        .return
