# expect: signature 0: a field is out of range
# More than six arguments.
# patch: 65 07
.func f (any)
        .return
