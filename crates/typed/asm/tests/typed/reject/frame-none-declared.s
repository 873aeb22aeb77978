# expect: expected a frame of at most 0 bytes, found 8
# The function declares no frame.
.func f (any, any)
        push    %rdi
        pop     %rdi
        .return
