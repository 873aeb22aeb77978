# expect: head 0x|rsp: expected|write of 8
# Two depths come to the head, and then a third.
.func f (any, u32) frame 40
        push    %rbp
        mov     %rsp, %rbp
        test    %esi, %esi
        je      deep
        sub     $16, %rsp
        jmp     again
deep:   sub     $32, %rsp
.head
again:  mov     %rdi, -16(%rbp)
        mov     -16(%rbp), %rax
        mov     %rax, 0x10000000
        mov     %rbp, %rsp
        test    %esi, %esi
        jne     again
        pop     %rbp
        .return
