# expect: read of 1 bytes
# A sign-extended index can be negative.
.func f (any, any)
        movslq  %edi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
