# expect: too many or too large: imports
# More imports than allowed.
# patch: 50 01
.func f (any)
        .return
