# expect: too many or too large: jump tables
# More jump tables than allowed.
# patch: 46 01
.func f (any)
        .return
