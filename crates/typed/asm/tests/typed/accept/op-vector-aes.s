# AES and carry-less multiplication.
.func f (any, any)
        aesenc  %xmm0, %xmm1
        aesdeclast %xmm0, %xmm1
        aesimc  %xmm0, %xmm1
        aeskeygenassist $1, %xmm0, %xmm1
        pclmulqdq $1, %xmm0, %xmm1
        .return
