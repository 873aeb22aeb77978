# expect: rsp: expected
# leave takes the stack pointer from rbp.
.func f (any, any)
        mov     %rdi, %rbp
        leave
        .return
