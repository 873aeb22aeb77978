# expect: write of 8 bytes.*found 0xffffffc
# Half of the operand lies before the region.
.func f (any, any)
        movq    $0, 0xffffffc
        .return
