# expect: entry of call tables 2: a field is out of range
# More entries than there are.
# patch: 92 03
.func f (any)
        .return
.calltable t (any): f, f
