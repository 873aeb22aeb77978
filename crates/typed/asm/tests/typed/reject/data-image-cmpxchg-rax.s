# expect: expected \d+ bytes of data, found
# cmpxchg tells whether rax is equal.
.func f (any, any)
        lea     f(%rip), %rax
        cmpxchg %rdi, 0x10000000
        .return
