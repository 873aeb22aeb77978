# expect: read of 1 bytes
# An arithmetic shift keeps the sign.
.func f (any, any)
        sar     $32, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
