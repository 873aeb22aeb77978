# expect: truncated
# The text ends within the instruction.
.func f ()
        nop
        .byte   0x48, 0xb8, 0x00
