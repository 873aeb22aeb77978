# expect: signature 0: a field is out of range
# The code of a result is none that exists.
# patch: 64 09
.func f (any)
        .return
