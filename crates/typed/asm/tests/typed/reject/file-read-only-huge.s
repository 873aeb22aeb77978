# expect: too many or too large: read-only data
# The read-only data is larger than allowed.
# patch: 28 01 00 00 02
.func f (any)
        .return
