# Moves of 16 bytes.
.func f (any, any)
        movaps  %xmm0, %xmm1
        movaps  0x10000000, %xmm1
        movaps  %xmm1, 0x10000000
        movups  %xmm0, %xmm1
        movups  0x10000000, %xmm1
        movups  %xmm1, 0x10000000
        movapd  %xmm0, %xmm1
        movapd  0x10000000, %xmm1
        movapd  %xmm1, 0x10000000
        movupd  %xmm0, %xmm1
        movupd  0x10000000, %xmm1
        movupd  %xmm1, 0x10000000
        movdqa  %xmm0, %xmm1
        movdqa  0x10000000, %xmm1
        movdqa  %xmm1, 0x10000000
        movdqu  %xmm0, %xmm1
        movdqu  0x10000000, %xmm1
        movdqu  %xmm1, 0x10000000
        .return
