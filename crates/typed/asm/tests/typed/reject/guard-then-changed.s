# expect: read of 1 bytes
# The register changed after the comparison.
.func f (any, any)
        cmp     $100, %rdi
        lea     (%rdi,%rsi), %rdi
        ja      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
