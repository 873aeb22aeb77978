# expect: entry of call tables 0: a field is out of range
# The function has another signature than the table.
.func f (any)
        .return
.calltable t (): f
