# Conversions between numbers.
.func f (any, any)
        cvtsi2sd %rdi, %xmm0
        cvtsi2sdl %edi, %xmm0
        cvtsi2ssq 0x10000000, %xmm0
        cvtss2sd %xmm0, %xmm1
        cvtsd2ss %xmm0, %xmm1
        cvtdq2ps %xmm0, %xmm1
        cvttps2dq %xmm0, %xmm1
        cvtdq2pd %xmm0, %xmm1
        cvtps2pd %xmm0, %xmm1
        cvtpd2ps %xmm0, %xmm1
        cvttpd2dq %xmm0, %xmm1
        .return
