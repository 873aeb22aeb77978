# expect: write of 4 bytes.*image
# The text is not written.
.func f (any, any)
        mov     %edi, f(%rip)
        .return
