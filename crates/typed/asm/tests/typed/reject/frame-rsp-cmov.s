# expect: rsp: expected
# A conditional move makes it unknown.
.func f (any, any) frame 16
        lea     -8(%rsp), %rax
        sub     $16, %rsp
        test    %edi, %edi
        cmove   %rax, %rsp
        add     $16, %rsp
        .return
