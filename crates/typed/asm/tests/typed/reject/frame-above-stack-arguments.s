# expect: read of 8 bytes.*stack\+24
# There are two arguments on the stack, not three.
.func f (; stack 2)
        mov     24(%rsp), %rax
        .return
.entry start
.func start ()
        .return
