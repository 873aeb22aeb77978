# expect: write of 1 bytes.*found 0xfffffff
# The last byte before the region.
.func f (any, any)
        movb    $0, 0xfffffff
        .return
