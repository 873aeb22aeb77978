# and of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        and     %rsi, %rdi
        and     %esi, %edi
        and     %si, %di
        and     %sil, %dil
        and     $1, %rdi
        and     $0x1234567, %rdi
        and     $100, %edi
        and     $1000, %di
        and     $1, %dil
        and     %rsi, 0x10000000
        and     %esi, 0x10000000
        and     %si, 0x10000000
        and     %sil, 0x10000000
        andq    $1, 0x10000000
        andl    $1000, 0x10000000
        andw    $1, 0x10000000
        andb    $1, 0x10000000
        and     0x10000000, %rdi
        and     0x10000000, %edi
        and     0x10000000, %di
        and     0x10000000, %dil
        lock    and %rdi, 0x10000000
        lock    andl $1, 0x10000000
        mov     %rdi, %rax
        and     $1, %al
        and     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
