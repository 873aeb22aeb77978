# xadd of registers and memory.
.func f (any, any)
        xadd    %rdi, %rsi
        xadd    %edi, %esi
        xadd    %rdi, 0x10000000
        lock    xadd %edi, 0x10000000
        xadd    %dil, 0x10000000
        mov     %rdi, 0x10000000
        mov     %rsi, 0x10000000
        .return
