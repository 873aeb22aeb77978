# Logic acts on each byte for itself: the unknown upper bytes of results of set do not reach what is stored.
.func f (any)
        test    %edi, %edi
        sete    %cl
        sets    %dl
        or      %ecx, %edx
        movzbl  %dl, %eax
        mov     %eax, 0x10000000
        xor     %ecx, %edx
        mov     %dl, 0x10000000
        and     %ecx, %eax
        jz      out
        mov     %eax, 0x10000000
        movb    $1, 0x10000000(%rax)
out:    .return
