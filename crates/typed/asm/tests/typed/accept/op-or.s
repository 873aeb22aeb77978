# or of each size and operand form.
.func f (any, any)
        cmp     %rdi, %rsi
        or      %rsi, %rdi
        or      %esi, %edi
        or      %si, %di
        or      %sil, %dil
        or      $1, %rdi
        or      $0x1234567, %rdi
        or      $100, %edi
        or      $1000, %di
        or      $1, %dil
        or      %rsi, 0x10000000
        or      %esi, 0x10000000
        or      %si, 0x10000000
        or      %sil, 0x10000000
        orq     $1, 0x10000000
        orl     $1000, 0x10000000
        orw     $1, 0x10000000
        orb     $1, 0x10000000
        or      0x10000000, %rdi
        or      0x10000000, %edi
        or      0x10000000, %di
        or      0x10000000, %dil
        lock    or %rdi, 0x10000000
        lock    orl $1, 0x10000000
        mov     %rdi, %rax
        or      $1, %al
        or      $1000, %eax
        mov     %rax, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
