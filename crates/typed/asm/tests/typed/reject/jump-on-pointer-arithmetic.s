# expect: expected flags that stem from data
# A branch tells of the address.
.func f (any, any)
        lea     f(%rip), %rax
        add     $1, %rax
        js      out
        nop
out:    nop
        .return
