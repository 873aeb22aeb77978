# add of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        add     %rsi, %rdi
        add     %esi, %edi
        add     %si, %di
        add     %sil, %dil
        add     $1, %rdi
        add     $0x1234567, %rdi
        add     $100, %edi
        add     $1000, %di
        add     $1, %dil
        add     %rsi, 0x10000000
        add     %esi, 0x10000000
        add     %si, 0x10000000
        add     %sil, 0x10000000
        addq    $1, 0x10000000
        addl    $1000, 0x10000000
        addw    $1, 0x10000000
        addb    $1, 0x10000000
        add     0x10000000, %rdi
        add     0x10000000, %edi
        add     0x10000000, %di
        add     0x10000000, %dil
        lock    add %rdi, 0x10000000
        lock    addl $1, 0x10000000
        mov     %rdi, %rax
        add     $1, %al
        add     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
