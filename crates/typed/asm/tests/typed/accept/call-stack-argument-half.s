# An argument on the stack of which four bytes are data.
.func f (any) frame 24
        sub     $24, %rsp
        cmp     $0x5000, %sp
        jb      out
        mov     %rdi, (%rsp)
        mov     %edi, 8(%rsp)
        call    g
out:    add     $24, %rsp
        .return
.func g (; stack 2 u32 1) -> any
        mov     8(%rsp), %rax
        mov     16(%rsp), %ecx
        add     %rcx, %rax
        .return
