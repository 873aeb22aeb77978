# expect: frame 12: expected a multiple of 8
# Frames are multiples of 8.
.func f () frame 12
        .return
