# xor of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        xor     %rsi, %rdi
        xor     %esi, %edi
        xor     %si, %di
        xor     %sil, %dil
        xor     $1, %rdi
        xor     $0x1234567, %rdi
        xor     $100, %edi
        xor     $1000, %di
        xor     $1, %dil
        xor     %rsi, 0x10000000
        xor     %esi, 0x10000000
        xor     %si, 0x10000000
        xor     %sil, 0x10000000
        xorq    $1, 0x10000000
        xorl    $1000, 0x10000000
        xorw    $1, 0x10000000
        xorb    $1, 0x10000000
        xor     0x10000000, %rdi
        xor     0x10000000, %edi
        xor     0x10000000, %di
        xor     0x10000000, %dil
        lock    xor %rdi, 0x10000000
        lock    xorl $1, 0x10000000
        mov     %rdi, %rax
        xor     $1, %al
        xor     $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
