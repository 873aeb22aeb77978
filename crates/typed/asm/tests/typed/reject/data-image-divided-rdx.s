# expect: expected \d+ bytes of data, found
# rdx is divided too.
.func f (any, any)
        lea     f(%rip), %rdx
        mov     %rdi, %rax
        div     %rsi
        .return
