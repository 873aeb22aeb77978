# shl by 1, by an immediate and by cl.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        shl     %rdi
        shl     $3, %rdi
        shl     %cl, %rdi
        shl     $3, %edi
        shl     %cl, %edi
        shl     $3, %di
        shl     %cl, %di
        shl     $3, %dil
        shl     %cl, %dil
        shlq    $3, 0x10000000
        shll    %cl, 0x10000000
        shlw    0x10000000
        shlb    $1, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
