# test of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        test    %rsi, %rdi
        test    %esi, %edi
        test    %si, %di
        test    %sil, %dil
        test    $1, %rdi
        test    $0x1234567, %rdi
        test    $100, %edi
        test    $1000, %di
        test    $1, %dil
        test    %rsi, 0x10000000
        test    %esi, 0x10000000
        test    %si, 0x10000000
        test    %sil, 0x10000000
        testq   $1, 0x10000000
        testl   $1000, 0x10000000
        testw   $1, 0x10000000
        testb   $1, 0x10000000
        mov     %rdi, %rax
        test    $1, %al
        test    $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
