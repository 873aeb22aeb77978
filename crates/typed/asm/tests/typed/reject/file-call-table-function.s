# expect: entry of call tables 1: a field is out of range
# The function does not exist.
# patch: 100 01
.func f (any)
        .return
.calltable t (any): f, f
