# expect: version 2
# The version is another.
# patch: 8 02
.func f (any)
        .return
