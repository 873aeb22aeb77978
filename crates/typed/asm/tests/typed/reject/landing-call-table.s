# expect: endbr64
# A function of a call table has no endbr64.
# host: tracking
.func f ()
        endbr64
        .return
.func g ()
        .return
.calltable t (): f, g
