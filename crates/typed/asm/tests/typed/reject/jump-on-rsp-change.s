# expect: expected flags that stem from data
# The flags are of the stack pointer.
.func f (any, any) frame 8
        sub     $8, %rsp
        js      out
        nop
out:    add     $8, %rsp
        .return
