# expect: expected flags that stem from data
# The comparison was before the call.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        cmp     $1, %rdi
        call    g
        je      out
        nop
out:    .return
.func g ()
        .return
