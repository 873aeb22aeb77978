# expect: too many or too large: read-only data
# The read-only data is larger than allowed.
# patch: 31 20
.func f (any)
        .return
