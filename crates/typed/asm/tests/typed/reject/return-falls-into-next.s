# expect: goes on behind its end
# The function runs into the next.
.func f ()
        nop
.func g ()
        .return
