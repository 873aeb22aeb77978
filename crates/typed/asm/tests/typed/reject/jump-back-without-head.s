# expect: jump back to .* which has no annotation
# A loop needs a head.
.func f (any, any)
        nop
again:  dec     %edi
        jne     again
        .return
