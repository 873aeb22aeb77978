# cmp of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        cmp     %rsi, %rdi
        cmp     %esi, %edi
        cmp     %si, %di
        cmp     %sil, %dil
        cmp     $1, %rdi
        cmp     $0x1234567, %rdi
        cmp     $100, %edi
        cmp     $1000, %di
        cmp     $1, %dil
        cmp     %rsi, 0x10000000
        cmp     %esi, 0x10000000
        cmp     %si, 0x10000000
        cmp     %sil, 0x10000000
        cmpq    $1, 0x10000000
        cmpl    $1000, 0x10000000
        cmpw    $1, 0x10000000
        cmpb    $1, 0x10000000
        cmp     0x10000000, %rdi
        cmp     0x10000000, %edi
        cmp     0x10000000, %di
        cmp     0x10000000, %dil
        mov     %rdi, %rax
        cmp     $1, %al
        cmp     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
