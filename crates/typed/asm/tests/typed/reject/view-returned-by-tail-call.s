# expect: tail call: expected a callee with this function.s result
# The address of a view is no result.
.import packet 0x8000 (any) -> view
.func f (any) -> any
        jmp     packet
