# expect: read of 8 bytes: expected an address
# Only the lower half of the argument is data.
.func g (; stack 1 u32 0) -> any
        mov     8(%rsp), %rax
        .return
.entry start
.func start ()
        .return
