# expect: read of 1 bytes.*found unknown
# One of two views.
.import packet 0x8000 () -> view
.func f (any) -> any frame 16
        push    %rbx
        push    %rbp
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rax, %rbx
        mov     %rdx, %rbp
        mov     $4, %ecx
        call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
        cmp     %rbp, %rcx
        jae     out
        mov     0x10000008, %edi
        test    %edi, %edi
        je      read
        mov     %rbx, %rax
read:   movzbl  (%rax,%rcx), %eax
out:    pop     %rbp
        pop     %rbx
        xor     %eax, %eax
        .return
