# expect: signature 0: a field is out of range
# A result is a number, or there is none.
# patch: 64 05
.func f (any)
        .return
