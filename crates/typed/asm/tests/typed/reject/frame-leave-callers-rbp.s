# expect: rsp: expected
# rbp at the entry is the caller's.
.func f (any, any)
        leave
        .return
