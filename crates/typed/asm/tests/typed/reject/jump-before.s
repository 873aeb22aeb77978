# expect: no instruction, function or stub
# The jump leads before the image.
.func f (any, any)
        jmp     f-1
