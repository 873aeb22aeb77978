# expect: signature 0: a field is out of range
# An unknown type of an argument.
# patch: 66 05
.func f (any)
        .return
