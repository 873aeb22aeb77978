# A tail call of an import that returns a view, from a function that returns nothing.
.import packet 0x8000 (any) -> view
.func f (any)
        jmp     packet
