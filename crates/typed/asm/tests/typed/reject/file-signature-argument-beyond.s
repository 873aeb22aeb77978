# expect: signature 0: a field is out of range
# A type behind the last argument.
# patch: 67 01
.func f (any)
        .return
