# expect: signature 0: a field is out of range
# An unknown type of the result.
# patch: 64 05
.func f (any)
        .return
