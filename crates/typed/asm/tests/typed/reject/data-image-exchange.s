# expect: expected \d+ bytes of data, found
# xchg stores too.
.func f (any, any)
        lea     f(%rip), %rax
        xchg    %rax, 0x10000000
        .return
