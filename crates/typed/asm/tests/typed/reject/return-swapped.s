# expect: rbx: expected its value at entry
# Two saved registers come back in each other's place.
.func f (any, any) frame 16
        push    %rbx
        push    %rbp
        pop     %rbx
        pop     %rbp
        .return
