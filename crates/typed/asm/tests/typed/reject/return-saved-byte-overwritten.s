# expect: rbx: expected its value at entry
# One byte of the saved register was overwritten.
.func f (any, any) frame 8
        push    %rbx
        movb    $0, 3(%rsp)
        pop     %rbx
        .return
