# expect: jump back to .* which has no annotation
# The jump leads into itself.
.func f (any, any)
        .byte   0xeb, 0xff, 0xc0
        .return
