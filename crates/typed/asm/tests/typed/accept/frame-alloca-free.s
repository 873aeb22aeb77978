# The frame pointer brings the stack pointer back.
.func f (any, any) frame 24
        push    %rbp
        mov     %rsp, %rbp
        push    %rdi
        push    %rsi
        mov     %rbp, %rsp
        pop     %rbp
        .return
