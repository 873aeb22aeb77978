# expect: read of 4 bytes.*found unknown
# Half of what is passed as unknown is no index either.
.func f (any, unknown)
        mov     %esi, %esi
        mov     0x10000000(%rsi), %eax
        .return
