# expect: too many or too large: call tables
# More call tables than allowed.
# patch: 42 01
.func f (any)
        .return
