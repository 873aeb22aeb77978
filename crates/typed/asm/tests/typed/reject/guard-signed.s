# expect: read of 1 bytes
# A signed comparison allows negative numbers.
.func f (any, any)
        cmp     $100, %rdi
        jg      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
