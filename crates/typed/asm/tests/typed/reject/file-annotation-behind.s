# expect: malformed annotation
# The head is behind the function.
# patch: 88 40
.func f (any)
        mov     %edi, %edi
.head rdi: unknown
again:  .return
