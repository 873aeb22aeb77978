# expect: jump table 0: a field is out of range
# The table is not aligned.
# patch: 88 02
.func f (any)
one:    .return
.jumptable jt: one, one
