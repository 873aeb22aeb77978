# not of each size keeps the flags.
.func f (any, any)
        cmp     %rsi, %rdi
        not     %rdi
        not     %esi
        not     %di
        not     %sil
        notq    0x10000000
        lock    notl 0x10000000
        jb      out
        mov     %rdi, 0x10000000
out:    nop
        .return
