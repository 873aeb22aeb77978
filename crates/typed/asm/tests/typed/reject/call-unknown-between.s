# expect: argument rdx: expected u8, found any
# Arguments behind one that is unknown are checked.
.func f (any, any, any)
        jmp     g
.func g (any, unknown, u8)
        .return
