# expect: read of 8 bytes.*image
# A stub is not read.
.func f ()
        mov     __x86_return_thunk(%rip), %rax
        .return
