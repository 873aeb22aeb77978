# expect: truncated
# The function ends within the instruction.
.func f ()
        nop
        .byte   0xe8, 0x00
.func g ()
        .return
