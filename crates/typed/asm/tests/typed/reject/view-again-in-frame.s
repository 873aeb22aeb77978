# expect: read of 1 bytes.*found unknown
# A view of the last time that was kept in the frame.
.import packet 0x8000 () -> view
.func f () frame 8
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
        jmp     first
.head [stack-8]: view of get at 0
again:  nop
first:  nop
get:    call    packet
        mov     (%rsp), %rdi
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
        movzbl  (%rdi,%rcx), %edi
        mov     %rax, (%rsp)
        jmp     again
out:    add     $8, %rsp
        .return
