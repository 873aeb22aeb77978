# expect: jump table 0: a field is out of range
# More entries than the read-only data.
# patch: 95 ff
.func f (any)
one:    .return
.jumptable jt: one, one
