# Inserts from general registers and memory.
.func f (any, any)
        movd    %edi, %xmm0
        movq    %rdi, %xmm0
        pinsrw  $1, %edi, %xmm0
        pinsrb  $1, %edi, %xmm0
        pinsrd  $1, %edi, %xmm0
        pinsrq  $1, %rdi, %xmm0
        pinsrw  $1, 0x10000000, %xmm0
        pinsrb  $1, 0x10000000, %xmm0
        insertps $1, 0x10000000, %xmm0
        .return
