# expect: signature 0: a field is out of range
# An argument without a type.
# patch: 65 02
.func f (any)
        .return
