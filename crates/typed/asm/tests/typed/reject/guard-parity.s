# expect: read of 1 bytes
# The parity flag is no comparison.
.func f (any, any)
        cmp     $100, %rdi
        jp      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
