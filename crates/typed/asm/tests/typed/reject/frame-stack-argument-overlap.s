# expect: read of 8 bytes.*stack\+12
# The last four bytes are the caller's.
.func f (; stack 1)
        mov     12(%rsp), %rax
        .return
.entry start
.func start ()
        .return
