# expect: endbr64
# The host enters the program by an indirect branch.
# host: tracking
.func f ()
        .return
