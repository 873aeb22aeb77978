# expect: no instruction, function or stub
# Nothing is behind the image.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        call    f+0x100000
out:    nop
        .return
