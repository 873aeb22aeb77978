# expect: jump table 0: a field is out of range
# The table passes the read-only data.
# patch: 88 04
.func f (any)
one:    .return
.jumptable jt: one, one
