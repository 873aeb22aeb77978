# expect: expected flags that stem from data
# One way brings flags of an address.
.func f (any, any)
        test    %edi, %edi
        je      over
        cmp     %rdi, %rsp
over:   jb      out
        nop
out:    nop
        .return
