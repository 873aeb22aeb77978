# expect: rbx: expected its value at entry
# rbx belongs to the caller.
.func f (any, any)
        mov     %rdi, %rbx
        .return
