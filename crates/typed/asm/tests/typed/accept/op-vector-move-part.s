# Moves of 4 and 8 bytes.
.func f (any, any)
        movss   0x10000000, %xmm0
        movss   %xmm0, 0x10000000
        movss   %xmm0, %xmm1
        movsd   0x10000000, %xmm0
        movsd   %xmm0, 0x10000000
        movlps  0x10000000, %xmm0
        movhps  0x10000000, %xmm0
        movlps  %xmm0, 0x10000000
        movhps  %xmm0, 0x10000000
        movlpd  0x10000000, %xmm0
        movhpd  %xmm0, 0x10000000
        movhlps %xmm0, %xmm1
        movlhps %xmm0, %xmm1
        movq    0x10000000, %xmm0
        movq    %xmm0, 0x10000000
        movd    0x10000000, %xmm0
        movd    %xmm0, 0x10000000
        movddup 0x10000000, %xmm0
        movshdup %xmm0, %xmm1
        lddqu   0x10000000, %xmm0
        movntdq %xmm0, 0x10000000
        movntps %xmm0, 0x10000000
        .return
