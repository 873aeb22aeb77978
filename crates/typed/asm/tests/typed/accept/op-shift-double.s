# shld and shrd by an immediate and by cl. With two bytes the count may be 16, but not more.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        shld    $3, %rsi, %rdi
        shrd    $3, %esi, %edi
        shld    $16, %si, %di
        shrd    %cl, %rsi, %rdi
        shld    $3, %rsi, 0x10000000
        shrd    %cl, %esi, 0x10000000
        mov     %rdi, 0x10000000
        and     $15, %ecx
        shld    %cl, %si, %di
        mov     %di, 0x10000000
        lea     f(%rip), %rax
        add     %rdi, %rax
        shrd    $15, %si, %di
        setc    0x10000000
        .return
