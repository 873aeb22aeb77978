# expect: malformed annotation
# The head is within an instruction.
.func f (any, u32)
        .byte   0xb8
.head
        .byte   0, 0, 0, 0
        .return
