# expect: jump back to .* which has no annotation
# An endless loop needs a head too.
.func f (any, any)
        nop
here:   jmp     here
