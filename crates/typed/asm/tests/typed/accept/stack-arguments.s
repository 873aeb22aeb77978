# A function reads and writes its arguments on the stack.
.func f () -> any frame 24
        push    $2
        push    $1
        mov     %rsp, %rax
        cmp     $0x5000, %sp
        jb      less
        call    g
        jmp     out
less:   xor     %eax, %eax
out:    add     $16, %rsp
        .return
.func g (; stack 2) -> any
        mov     8(%rsp), %rax
        add     16(%rsp), %rax
        mov     %rax, 8(%rsp)
        .return
