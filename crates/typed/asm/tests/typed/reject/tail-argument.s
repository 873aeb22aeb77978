# expect: argument rdi: expected u32, found any
# Arguments are checked.
.func f (any)
        jmp     g
.func g (u32)
        .return
