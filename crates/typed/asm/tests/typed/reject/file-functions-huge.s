# expect: too many or too large: functions
# More functions than allowed.
# patch: 38 11
.func f (any)
        .return
