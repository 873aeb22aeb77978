# expect: source-instruction.s:4: no such instruction
# The GNU assembler knows no such instruction.
.func f ()
        frobnicate %rax
        .return
