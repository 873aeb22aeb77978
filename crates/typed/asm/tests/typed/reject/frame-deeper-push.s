# expect: expected a frame of at most 8 bytes, found 16
# The frame is deeper than declared.
.func f (any, any) frame 8
        push    %rdi
        push    %rsi
        pop     %rsi
        pop     %rdi
        .return
