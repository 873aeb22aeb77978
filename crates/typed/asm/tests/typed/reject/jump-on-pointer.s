# expect: expected flags that stem from data
# A branch tells of the address.
.func f (any, any)
        cmp     %rdi, %rsp
        jb      out
        nop
out:    nop
        .return
