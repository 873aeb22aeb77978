# expect: read of 1 bytes
# A sum below a bound can have wrapped.
.func f (any, any)
        lea     (%rdi,%rsi), %rax
        cmp     $100, %rax
        ja      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
