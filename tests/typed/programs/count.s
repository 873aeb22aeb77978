# Counts to 60 million in each of 15 registers, which an interruption must not change: 1 if all agree.
.func main () -> any frame 48
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        xor     %eax, %eax
        xor     %ecx, %ecx
        xor     %edx, %edx
        xor     %ebx, %ebx
        xor     %ebp, %ebp
        xor     %esi, %esi
        xor     %edi, %edi
        xor     %r8d, %r8d
        xor     %r9d, %r9d
        xor     %r10d, %r10d
        xor     %r11d, %r11d
        xor     %r12d, %r12d
        xor     %r13d, %r13d
        xor     %r14d, %r14d
        xor     %r15d, %r15d
.head rax: any, rcx: any, rdx: any, rbx: any, rbp: any, rsi: any, rdi: any, r8: any, r9: any, r10: any, r11: any
.head r12: any, r13: any, r14: any, r15: any
again:  inc     %rcx
        inc     %rdx
        inc     %rbx
        inc     %rbp
        inc     %rsi
        inc     %rdi
        inc     %r8
        inc     %r9
        inc     %r10
        inc     %r11
        inc     %r12
        inc     %r13
        inc     %r14
        inc     %r15
        inc     %rax
        cmp     $60000000, %rax
        jne     again
        xor     %rax, %rcx
        xor     %rax, %rdx
        or      %rdx, %rcx
        xor     %rax, %rbx
        or      %rbx, %rcx
        xor     %rax, %rbp
        or      %rbp, %rcx
        xor     %rax, %rsi
        or      %rsi, %rcx
        xor     %rax, %rdi
        or      %rdi, %rcx
        xor     %rax, %r8
        or      %r8, %rcx
        xor     %rax, %r9
        or      %r9, %rcx
        xor     %rax, %r10
        or      %r10, %rcx
        xor     %rax, %r11
        or      %r11, %rcx
        xor     %rax, %r12
        or      %r12, %rcx
        xor     %rax, %r13
        or      %r13, %rcx
        xor     %rax, %r14
        or      %r14, %rcx
        xor     %rax, %r15
        or      %r15, %rcx
        xor     %eax, %eax
        test    %rcx, %rcx
        sete    %al
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        .return
