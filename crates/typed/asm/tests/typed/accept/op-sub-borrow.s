# sbb of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        sbb     %rsi, %rdi
        sbb     %esi, %edi
        sbb     %si, %di
        sbb     %sil, %dil
        sbb     $1, %rdi
        sbb     $0x1234567, %rdi
        sbb     $100, %edi
        sbb     $1000, %di
        sbb     $1, %dil
        sbb     %rsi, 0x10000000
        sbb     %esi, 0x10000000
        sbb     %si, 0x10000000
        sbb     %sil, 0x10000000
        sbbq    $1, 0x10000000
        sbbl    $1000, 0x10000000
        sbbw    $1, 0x10000000
        sbbb    $1, 0x10000000
        sbb     0x10000000, %rdi
        sbb     0x10000000, %edi
        sbb     0x10000000, %di
        sbb     0x10000000, %dil
        mov     %rdi, %rax
        sbb     $1, %al
        sbb     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
