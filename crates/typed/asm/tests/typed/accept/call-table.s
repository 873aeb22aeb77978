# An indirect call by the thunk, its index masked.
.func f (any, u32) -> any frame 8
        push    %rbx
        cmp     $0x5000, %sp
        jb      less
        mov     %rdi, %rbx
        and     $3, %esi
        lea     t(%rip), %rax
        mov     (%rax,%rsi,8), %rax
        mov     %ebx, %edi
        call    __x86_indirect_thunk_rax
        jmp     out
less:   xor     %eax, %eax
out:    pop     %rbx
        .return
.calltable t (u32) -> any: g, h, g, h
.func g (u32) -> any
        lea     1(%rdi), %rax
        .return
.func h (u32) -> any
        lea     -1(%rdi), %rax
        .return
