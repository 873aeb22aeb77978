# expect: expected \d+ bytes of data, found
# A conversion makes it data.
.func f (any, any)
        lea     f(%rip), %rax
        cvtsi2sd %rax, %xmm0
        .return
