# expect: signature 0: a field is out of range
# A reserved byte is not 0.
# patch: 75 01
.func f (any)
        .return
