# expect: signature 0: a field is out of range
# An unknown type of an argument.
# patch: 66 09
.func f (any)
        .return
