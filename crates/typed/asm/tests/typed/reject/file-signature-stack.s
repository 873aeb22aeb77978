# expect: signature 0: a field is out of range
# More arguments on the stack than allowed.
# patch: 72 41
.func f (any)
        .return
