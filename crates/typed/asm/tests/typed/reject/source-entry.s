# expect: `main` is no function
# The entry is a function.
.entry main
.func f ()
        .return
