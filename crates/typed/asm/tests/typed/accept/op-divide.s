# div and idiv of each size.
.func f (any, any)
        mov     %rdi, %rax
        xor     %edx, %edx
        div     %rsi
        mov     %rdx, 0x10000000
        cltd
        idiv    %esi
        mov     %eax, 0x10000000
        cwtd
        idiv    %si
        movzbl  %al, %eax
        div     %sil
        mov     %ah, %cl
        mov     %cl, 0x10000000
        xor     %edx, %edx
        divl    0x10000000
        mov     %rax, 0x10000000
        .return
