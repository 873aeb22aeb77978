# expect: read of 1 bytes
# A sign-extended byte can be negative.
.func f (any, any)
        movsbq  %dil, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
