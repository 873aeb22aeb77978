# expect: too many or too large: entries
# More entries than allowed.
# patch: 54 11
.func f (any)
        .return
