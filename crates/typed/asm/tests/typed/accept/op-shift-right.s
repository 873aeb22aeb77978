# shr by 1, by an immediate and by cl.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        shr     %rdi
        shr     $3, %rdi
        shr     %cl, %rdi
        shr     $3, %edi
        shr     %cl, %edi
        shr     $3, %di
        shr     %cl, %di
        shr     $3, %dil
        shr     %cl, %dil
        shrq    $3, 0x10000000
        shrl    %cl, 0x10000000
        shrw    0x10000000
        shrb    $1, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
