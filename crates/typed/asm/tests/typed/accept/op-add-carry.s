# adc of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        adc     %rsi, %rdi
        adc     %esi, %edi
        adc     %si, %di
        adc     %sil, %dil
        adc     $1, %rdi
        adc     $0x1234567, %rdi
        adc     $100, %edi
        adc     $1000, %di
        adc     $1, %dil
        adc     %rsi, 0x10000000
        adc     %esi, 0x10000000
        adc     %si, 0x10000000
        adc     %sil, 0x10000000
        adcq    $1, 0x10000000
        adcl    $1000, 0x10000000
        adcw    $1, 0x10000000
        adcb    $1, 0x10000000
        adc     0x10000000, %rdi
        adc     0x10000000, %edi
        adc     0x10000000, %di
        adc     0x10000000, %dil
        mov     %rdi, %rax
        adc     $1, %al
        adc     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
