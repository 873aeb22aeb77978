# sub of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        sub     %rsi, %rdi
        sub     %esi, %edi
        sub     %si, %di
        sub     %sil, %dil
        sub     $1, %rdi
        sub     $0x1234567, %rdi
        sub     $100, %edi
        sub     $1000, %di
        sub     $1, %dil
        sub     %rsi, 0x10000000
        sub     %esi, 0x10000000
        sub     %si, 0x10000000
        sub     %sil, 0x10000000
        subq    $1, 0x10000000
        subl    $1000, 0x10000000
        subw    $1, 0x10000000
        subb    $1, 0x10000000
        sub     0x10000000, %rdi
        sub     0x10000000, %edi
        sub     0x10000000, %di
        sub     0x10000000, %dil
        lock    sub %rdi, 0x10000000
        lock    subl $1, 0x10000000
        mov     %rdi, %rax
        sub     $1, %al
        sub     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
