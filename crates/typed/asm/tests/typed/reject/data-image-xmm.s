# expect: expected \d+ bytes of data, found
# Vector registers hold data only.
.func f (any, any)
        lea     f(%rip), %rax
        movq    %rax, %xmm0
        .return
