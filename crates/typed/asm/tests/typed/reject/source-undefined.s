# expect: source-undefined.s:5: `nothing` is not defined
# Nothing has this name.
.func f ()
        nop
        jmp     nothing
