# expect: expected 2 bytes of data, found
# The manual leaves the result of shld undefined if the count is larger than the operand.
.func f (any, any)
        shld    $17, %di, %si
        mov     %si, 0x10000000
        .return
