# Recursion, with a check of the stack in each call.
.func fibonacci (u32) -> any frame 16
        push    %rbx
        push    %rbp
        mov     %edi, %ebx
        mov     $1, %eax
        cmp     $2, %ebx
        jb      out
        cmp     $0x5000, %sp
        jb      out
        lea     -1(%rbx), %edi
        call    fibonacci
        mov     %rax, %rbp
        lea     -2(%rbx), %edi
        call    fibonacci
        add     %rbp, %rax
out:    pop     %rbp
        pop     %rbx
        .return
