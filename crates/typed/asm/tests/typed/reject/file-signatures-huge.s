# expect: too many or too large: signatures
# More signatures than 16 bits count.
# patch: 34 01
.func f (any)
        .return
