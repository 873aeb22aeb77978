# expect: read of 1 bytes
# The sign of a difference is no comparison.
.func f (any, any)
        cmp     $100, %rdi
        jns     out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
