# expect: tail call: expected a callee with this function.s result
# The callee returns nothing.
.func f () -> any
        jmp     g
.func g ()
        .return
