# sar by 1, by an immediate and by cl.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        sar     %rdi
        sar     $3, %rdi
        sar     %cl, %rdi
        sar     $3, %edi
        sar     %cl, %edi
        sar     $3, %di
        sar     %cl, %di
        sar     $3, %dil
        sar     %cl, %dil
        sarq    $3, 0x10000000
        sarl    %cl, 0x10000000
        sarw    0x10000000
        sarb    $1, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
