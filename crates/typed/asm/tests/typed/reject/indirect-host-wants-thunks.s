# expect: indirect branches of its own; this host allows thunks only
# The host wants thunks.
# host: thunks
.indirect
.func f ()
        .return
