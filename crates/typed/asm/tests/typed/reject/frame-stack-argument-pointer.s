# expect: expected \d+ bytes of data, found
# An argument on the stack holds data.
.func f (; stack 1)
        mov     %rbx, 8(%rsp)
        .return
.entry start
.func start ()
        .return
