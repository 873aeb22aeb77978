# expect: rbx: expected its value at entry
# The slot of the saved register was overwritten.
.func f (any, any) frame 8
        push    %rbx
        mov     %rdi, (%rsp)
        pop     %rbx
        .return
