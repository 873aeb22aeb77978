# expect: expected \d+ bytes of data, found
# cmpxchg stores its source.
.func f (any, any)
        lea     f(%rip), %rcx
        mov     %rdi, %rax
        cmpxchg %rcx, 0x10000000
        .return
