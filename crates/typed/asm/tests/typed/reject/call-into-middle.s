# expect: no instruction, function or stub
# A call leads to functions only.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        call    f+1
out:    nop
        .return
