# A comparison bounds each copy.
.func f (any, any)
        mov     %rdi, %rax
        cmp     $1000, %rdi
        ja      out
        movzbl  0x10000000(%rax), %ecx
out:    nop
        .return
