# rol by 1, by an immediate and by cl.
.func f (any, any)
        mov     %esi, %ecx
        cmp     %rsi, %rdi
        rol     %rdi
        rol     $3, %rdi
        rol     %cl, %rdi
        rol     $3, %edi
        rol     %cl, %edi
        rol     $3, %di
        rol     %cl, %di
        rol     $3, %dil
        rol     %cl, %dil
        rolq    $3, 0x10000000
        roll    %cl, 0x10000000
        rolw    0x10000000
        rolb    $1, 0x10000000
        je      out
        mov     %rdi, 0x10000000
out:    nop
        .return
