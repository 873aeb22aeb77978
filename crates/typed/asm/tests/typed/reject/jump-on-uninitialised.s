# expect: expected flags that stem from data
# The slot was not written.
.func f (any, any) frame 8
        sub     $8, %rsp
        cmpq    $0, (%rsp)
        je      out
        nop
out:    lea     8(%rsp), %rsp
        .return
