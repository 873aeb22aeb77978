# Results in general registers.
.func f (any, any)
        movd    %xmm0, %eax
        movq    %xmm0, %rax
        mov     %rax, 0x10000000
        pextrw  $1, %xmm0, %eax
        pextrb  $1, %xmm0, %eax
        pextrd  $1, %xmm0, %eax
        pextrq  $1, %xmm0, %rax
        pextrb  $1, %xmm0, 0x10000000
        pextrw  $1, %xmm0, 0x10000000
        extractps $1, %xmm0, 0x10000000
        pmovmskb %xmm0, %eax
        movzbl  0x10000000(%rax), %ecx
        movmskps %xmm0, %eax
        movmskpd %xmm0, %eax
        cvttsd2si %xmm0, %rax
        cvtsd2si %xmm0, %eax
        cvttss2si 0x10000000, %eax
        movzbl  0x10000000(%rax), %ecx
        .return
