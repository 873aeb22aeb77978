# expect: .head before any .func
# Heads are in functions.
.head rax: any
.func f ()
        .return
