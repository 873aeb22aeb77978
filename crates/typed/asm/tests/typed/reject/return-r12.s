# expect: r12: expected its value at entry
# r12 belongs to the caller.
.func f (any, any)
        mov     %rdi, %r12
        .return
