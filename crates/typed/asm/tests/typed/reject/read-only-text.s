# expect: read of 4 bytes.*image
# The text is not read.
.func f (any, any)
        mov     f(%rip), %eax
        .return
