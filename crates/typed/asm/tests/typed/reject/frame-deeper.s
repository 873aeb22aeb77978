# expect: expected a frame of at most 16 bytes, found 24
# The frame is deeper than declared.
.func f (any, any) frame 16
        sub     $24, %rsp
        add     $24, %rsp
        .return
