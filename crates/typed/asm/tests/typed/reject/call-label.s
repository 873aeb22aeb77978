# expect: no instruction, function or stub
# A label within the function is no function.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        call    inside
inside: nop
out:    nop
        .return
