# expect: expected \d+ bytes of data, found
# An address with a bit set is no data.
.func f (any, any)
        lea     f(%rip), %rax
        or      $1, %rax
        mov     %rax, 0x10000000
        .return
