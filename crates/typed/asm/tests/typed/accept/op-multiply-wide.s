# mul and imul into rdx:rax.
.func f (any, any)
        mov     %rdi, %rax
        mul     %rsi
        mov     %rdx, 0x10000000
        imul    %esi
        mul     %si
        mul     %sil
        imul    %dil
        mulq    0x10000000
        imull   0x10000000
        mov     %rax, 0x10000000
        .return
