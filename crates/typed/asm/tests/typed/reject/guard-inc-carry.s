# expect: read of 1 bytes
# inc keeps the old carry.
.func f (any, any)
        cmp     $100, %rsi
        inc     %rdi
        jae     out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
