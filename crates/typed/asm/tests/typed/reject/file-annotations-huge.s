# expect: too many or too large: annotations
# More annotations than allowed.
# patch: 56 01 00 00 02
.func f (any)
        .return
