# A tail call passes the arguments on the stack on.
.func f (; stack 2) -> any
        movq    $1, 8(%rsp)
        jmp     g
.func g (; stack 1) -> any
        mov     8(%rsp), %rax
        .return
.entry start
.func start ()
        .return
