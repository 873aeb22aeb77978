# expect: expected \d+ bytes of data, found
# Whether a division faults tells of its operands.
.func f (any, any)
        lea     f(%rip), %rax
        xor     %edx, %edx
        div     %rdi
        .return
