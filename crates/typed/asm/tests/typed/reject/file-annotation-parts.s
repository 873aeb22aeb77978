# expect: malformed annotation
# An unknown part of an annotation.
# patch: 89 80
.func f (any)
        mov     %edi, %edi
.head rdi: unknown
again:  .return
