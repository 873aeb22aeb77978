# Sum of 32-bit numbers, four at a time.
.func sum (u32, u32) -> any
        pxor    %xmm0, %xmm0
        xor     %eax, %eax
        jmp     test
.head rdi: u32, rsi: u32
four:   pmovzxdq 0x10000000(%rdi), %xmm1
        paddq   %xmm1, %xmm0
        pmovzxdq 0x10000008(%rdi), %xmm1
        paddq   %xmm1, %xmm0
        add     $16, %edi
        sub     $4, %esi
test:   cmp     $4, %esi
        jae     four
        jmp     last
.head rax: any, rdi: u32, rsi: u32, rcx: unknown
one:    mov     0x10000000(%rdi), %ecx
        add     %rcx, %rax
        add     $4, %edi
        dec     %esi
last:   test    %esi, %esi
        jne     one
        movq    %xmm0, %rcx
        add     %rcx, %rax
        psrldq  $8, %xmm0
        movq    %xmm0, %rcx
        add     %rcx, %rax
        .return
