# expect: jump table 0: a field is out of range
# A table without entries.
# patch: 92 00
.func f (any)
one:    .return
.jumptable jt: one, one
