# expect: signature 0: a field is out of range
# A view is no argument.
# patch: 66 06
.func f (any)
        .return
