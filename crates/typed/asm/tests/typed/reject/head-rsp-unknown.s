# expect: head 0x|rsp: expected|write of 8
# The head says that the stack pointer is unknown, and goes on below it.
.func f (any, u32) frame 40
        push    %rbp
        mov     %rsp, %rbp
        sub     $32, %rsp
.head rsp: unknown
again:  mov     %rdi, -16(%rbp)
        mov     -16(%rbp), %rax
        mov     %rax, 0x10000000
        mov     %rbp, %rsp
        test    %esi, %esi
        jne     again
        pop     %rbp
        .return
