# expect: read of 1 bytes
# The comparison was of another register.
.func f (any, any)
        cmp     $100, %rsi
        ja      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
