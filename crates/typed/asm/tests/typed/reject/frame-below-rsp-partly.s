# expect: write of 16 bytes
# The vector begins below the stack pointer.
.func f (any, any) frame 8
        sub     $8, %rsp
        movups  %xmm0, -8(%rsp)
        add     $8, %rsp
        .return
