# expect: entry of call tables 1: a field is out of range
# An entry of no table.
# patch: 92 01
.func f (any)
        .return
.calltable t (any): f, f
