# expect: no instruction, function or stub
# Nothing is before the image.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        call    f-16
out:    nop
        .return
