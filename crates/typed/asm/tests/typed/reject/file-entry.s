# expect: entry 1: a field is out of range
# The program starts at no function.
# patch: 60 01
.func f (any)
        .return
