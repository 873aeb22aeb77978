# inc keeps the carry of data.
.func f (any, any)
        add     %rsi, %rdi
        inc     %rsi
        adc     $0, %rdi
        mov     %rdi, 0x10000000
        .return
