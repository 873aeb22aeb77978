# Vectors in the frame.
.func f (any, any) frame 40
        sub     $40, %rsp
        movups  %xmm0, (%rsp)
        movsd   %xmm1, 16(%rsp)
        movups  (%rsp), %xmm2
        mov     4(%rsp), %rax
        mov     %rax, 0x10000000
        movss   16(%rsp), %xmm3
        add     $40, %rsp
        .return
