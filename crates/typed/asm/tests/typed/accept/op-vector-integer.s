# Arithmetic of integers.
.func f (any, any)
        paddb   %xmm0, %xmm1
        paddw   %xmm0, %xmm1
        paddd   %xmm0, %xmm1
        paddq   %xmm0, %xmm1
        psubb   %xmm0, %xmm1
        psubd   %xmm0, %xmm1
        pmullw  %xmm0, %xmm1
        pmuludq %xmm0, %xmm1
        pmulhw  %xmm0, %xmm1
        pmaddwd %xmm0, %xmm1
        pand    %xmm0, %xmm1
        pandn   %xmm0, %xmm1
        por     %xmm0, %xmm1
        pxor    %xmm0, %xmm1
        pcmpeqb %xmm0, %xmm1
        pcmpgtd %xmm0, %xmm1
        punpcklbw %xmm0, %xmm1
        punpckhdq %xmm0, %xmm1
        packsswb %xmm0, %xmm1
        packuswb %xmm0, %xmm1
        pminub  %xmm0, %xmm1
        pmaxsw  %xmm0, %xmm1
        pavgb   %xmm0, %xmm1
        psadbw  %xmm0, %xmm1
        pshufb  %xmm0, %xmm1
        pabsd   %xmm0, %xmm1
        phaddd  %xmm0, %xmm1
        pmulld  %xmm0, %xmm1
        pminsd  %xmm0, %xmm1
        pmaxud  %xmm0, %xmm1
        pcmpeqq %xmm0, %xmm1
        pcmpgtq %xmm0, %xmm1
        ptest   %xmm0, %xmm1
        psllw   %xmm0, %xmm1
        psrld   %xmm0, %xmm1
        psraw   %xmm0, %xmm1
        pslldq  $4, %xmm1
        psrldq  $4, %xmm1
        psllw   $3, %xmm1
        psrad   $3, %xmm1
        psrlq   $3, %xmm1
        pshufd  $1, %xmm0, %xmm1
        pshuflw $1, %xmm0, %xmm1
        pshufhw $1, %xmm0, %xmm1
        palignr $4, %xmm0, %xmm1
        pblendw $3, %xmm0, %xmm1
        pmovzxbw %xmm0, %xmm1
        pmovsxdq 0x10000000, %xmm1
        paddd   0x10000000, %xmm1
        .return
