# expect: write of 1 bytes.*stack\+0
# Not even one byte of it.
.func f (any, any)
        movb    $0, (%rsp)
        .return
