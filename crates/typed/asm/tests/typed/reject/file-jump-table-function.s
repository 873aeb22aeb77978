# expect: jump table 0: a field is out of range
# The function does not exist.
# patch: 96 01
.func f (any)
one:    .return
.jumptable jt: one, one
