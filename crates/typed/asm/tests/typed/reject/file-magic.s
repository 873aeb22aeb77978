# expect: not a typed program
# The first bytes are others.
# patch: 0 00
.func f (any)
        .return
