# expect: expected \d+ bytes of data, found
# Half of an address is no data either.
.func f (any, any)
        lea     f(%rip), %rax
        movd    %eax, %xmm0
        .return
