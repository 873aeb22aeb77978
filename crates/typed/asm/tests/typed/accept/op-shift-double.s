# shld and shrd by an immediate and by cl.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        shld    $3, %rsi, %rdi
        shrd    $3, %esi, %edi
        shld    %cl, %si, %di
        shrd    %cl, %rsi, %rdi
        shld    $3, %rsi, 0x10000000
        shrd    %cl, %esi, 0x10000000
        mov     %rdi, 0x10000000
        .return
