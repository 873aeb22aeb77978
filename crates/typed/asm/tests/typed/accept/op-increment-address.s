# An address plus 1, as by add.
.func f (any) -> any frame 8
        push    %rdi
        mov     %rsp, %rdx
        inc     %rdx
        movzbl  (%rdx), %eax
        pop     %rdi
        .return
