# expect: write of 16 bytes.*stack-8
# The vector store reaches into the return address.
.func f (any, any) frame 8
        sub     $8, %rsp
        movups  %xmm0, (%rsp)
        add     $8, %rsp
        .return
