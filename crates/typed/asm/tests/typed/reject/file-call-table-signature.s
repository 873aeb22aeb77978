# expect: call table 0: a field is out of range
# The signature does not exist.
# patch: 94 01
.func f (any)
        .return
.calltable t (any): f, f
