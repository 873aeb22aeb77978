# expect: source-got.s:4: .*@GOTPCREL: write
# There is no global offset table.
.func f ()
        mov     f@GOTPCREL(%rip), %rax
        .return
