# expect: flags
# An unknown flag.
# patch: 12 02
.func f (any)
        .return
