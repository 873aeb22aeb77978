# expect: rbp: expected its value at entry
# rbp belongs to the caller.
.func f (any, any)
        xor     %ebp, %ebp
        .return
