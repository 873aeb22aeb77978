# expect: read of 1 bytes.*found
# An index of 64 bits reaches everything.
.func f (any, any)
        movzbl  0x10000000(%rdi), %eax
        .return
