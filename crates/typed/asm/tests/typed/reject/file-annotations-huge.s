# expect: too many or too large: annotations
# More annotations than allowed.
# patch: 59 20
.func f (any)
        .return
