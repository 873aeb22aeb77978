# expect: read of 1 bytes
# The copy was compared after the original changed.
.func f (any, any)
        mov     %rdi, %rax
        add     %rsi, %rdi
        cmp     $100, %rax
        ja      out
        movzbl  0x10000000(%rdi,%rdi,8), %eax
        add     %rdi, %rdi
out:    nop
        .return
