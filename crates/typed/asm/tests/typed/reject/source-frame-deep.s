# expect: frame 16392: expected
# Frames have a limit.
.func f () frame 16392
        .return
