# expect: rsp: expected
# A write of 32 bits clears the upper half.
.func f (any, any) frame 8
        sub     $8, %esp
        .return
