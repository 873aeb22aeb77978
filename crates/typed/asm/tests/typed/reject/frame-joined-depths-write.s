# expect: write of 8 bytes|rsp: expected
# The stack pointer is unknown after two depths.
.func f (any, any) frame 8
        test    %edi, %edi
        je      over
        push    %rdi
over:   mov     %rdi, (%rsp)
        .return
