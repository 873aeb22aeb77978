# expect: section .data: a program has no data
# There is no data section.
.func f ()
        .return
.data
        .long   1
