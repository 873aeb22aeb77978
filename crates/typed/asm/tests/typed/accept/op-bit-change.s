# bts, btr and btc.
.func f (any, any)
        bts     %rsi, %rdi
        btr     %esi, %edi
        btc     %si, %di
        bts     $3, %rdi
        btr     $3, %edi
        btc     $3, %di
        btsq    $3, 0x10000000
        lock    btrl $3, 0x10000000
        lock    btcw $3, 0x10000000
        mov     %rdi, 0x10000000
        .return
