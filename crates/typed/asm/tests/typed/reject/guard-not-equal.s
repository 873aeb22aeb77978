# expect: read of 1 bytes
# Not equal to one number is still almost any.
.func f (any, any)
        cmp     $100, %rdi
        je      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
