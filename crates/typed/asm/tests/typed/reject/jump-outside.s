# expect: no instruction, function or stub
# The jump leaves the image.
.func f (any, any)
        jmp     f+0x10000
