# expect: expected \d+ bytes of data, found
# Whether a division faults tells of the divisor.
.func f (any, any)
        lea     f(%rip), %rcx
        mov     %rdi, %rax
        xor     %edx, %edx
        div     %rcx
        .return
