# expect: tail call: expected a callee without further stack arguments
# The upper half of the argument on the stack is no data.
.func f (; stack 1 u32 0)
        jmp     g
.func g (; stack 1)
        .return
.entry start
.func start ()
        .return
