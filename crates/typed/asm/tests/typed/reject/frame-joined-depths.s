# expect: rsp: expected
# Two paths bring two depths.
.func f (any, any) frame 8
        test    %edi, %edi
        je      over
        push    %rdi
over:   nop
        .return
