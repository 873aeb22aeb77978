# expect: expected \d+ bytes of data, found
# A multiplied address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        imul    $2, %rax, %rax
        mov     %rax, 0x10000000
        .return
