# expect: call table 0: a field is out of range|entry of call tables
# A table without entries.
# patch: 92 00
.func f (any)
        .return
.calltable t (any): f, f
