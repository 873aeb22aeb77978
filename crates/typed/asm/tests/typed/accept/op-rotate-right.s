# ror by 1, by an immediate and by cl.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        ror     %rdi
        ror     $3, %rdi
        ror     %cl, %rdi
        ror     $3, %edi
        ror     %cl, %edi
        ror     $3, %di
        ror     %cl, %di
        ror     $3, %dil
        ror     %cl, %dil
        rorq    $3, 0x10000000
        rorl    %cl, 0x10000000
        rorw    0x10000000
        rorb    $1, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
