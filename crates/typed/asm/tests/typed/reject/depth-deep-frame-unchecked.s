# expect: expected a stack checked
# More than 4 KiB below the last check.
.func f (any, any) frame 8192
        sub     $4096, %rsp
        add     $4096, %rsp
        .return
.func g ()
        .return
