# expect: too many or too large: text
# The text is larger than allowed.
# patch: 24 01 00 00 02
.func f (any)
        .return
