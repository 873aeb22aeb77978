# expect: tail call: expected a callee without further stack arguments
# The caller's frame has no such arguments.
.func f ()
        jmp     g
.func g (; stack 1)
        .return
