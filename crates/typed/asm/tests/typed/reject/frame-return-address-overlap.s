# expect: write of 8 bytes.*stack-4
# The store reaches into the return address.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %rdi, 4(%rsp)
        add     $8, %rsp
        .return
