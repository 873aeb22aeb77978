# Short and long jumps.
.func f (any, any)
        jmp     one
one:    {disp32} jmp two
two:    nop
        .return
