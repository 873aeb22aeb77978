# expect: too many or too large: text
# The text is larger than allowed.
# patch: 27 20
.func f (any)
        .return
