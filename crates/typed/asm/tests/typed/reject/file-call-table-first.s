# expect: call table 0: a field is out of range
# The table's entries do not begin them.
# patch: 88 01
.func f (any)
        .return
.calltable t (any): f, f
