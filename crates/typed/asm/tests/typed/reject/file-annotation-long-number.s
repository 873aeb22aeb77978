# expect: malformed annotation
# A number with a superfluous byte.
# patch: 88 80 00
.func f (any)
        mov     %edi, %edi
.head rdi: unknown
again:  .return
