# expect: expected \d+ bytes of data, found
# pinsrw takes two bytes of it.
.func f (any, any)
        lea     f(%rip), %rax
        pinsrw  $0, %eax, %xmm0
        .return
