# expect: endbr64
# The endbr64 is one instruction later.
# host: tracking
.func f ()
        nop
        endbr64
        .return
