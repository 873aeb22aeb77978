# expect: the file ends within its text
# The largest text that is allowed.
# patch: 24 00 00 00 02
.func f (any)
        .return
