# expect: `t` is no call table
# The head names no table.
.func f ()
.head rax: entry of t
        .return
