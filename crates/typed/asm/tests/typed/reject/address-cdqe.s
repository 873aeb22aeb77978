# expect: read of 1 bytes
# cdqe sign-extends.
.func f (any, any)
        mov     %edi, %eax
        cltq
        movzbl  0x10000000(%rax), %eax
        .return
