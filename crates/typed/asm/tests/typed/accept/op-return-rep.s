# The return with a prefix that old compilers emit.
.indirect
.func f ()
        rep     ret
