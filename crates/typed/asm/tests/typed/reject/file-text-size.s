# expect: ends within its text
# The text is larger than the file.
# patch: 24 ff
.func f (any)
        .return
