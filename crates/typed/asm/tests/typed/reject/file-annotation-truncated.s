# expect: malformed annotation
# An annotation without its end.
# patch: 89 03
.func f (any)
        mov     %edi, %edi
.head rdi: unknown
again:  .return
