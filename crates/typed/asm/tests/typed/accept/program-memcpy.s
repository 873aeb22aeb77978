# Copies bytes, eight at a time while there are so many.
.func memcpy (u32, u32, u32) -> u32
        mov     %edi, %eax
        jmp     many
.head rdi: u32, rsi: u32, rdx: u32, rcx: unknown
eight:  mov     0x10000000(%rsi), %rcx
        mov     %rcx, 0x10000000(%rdi)
        add     $8, %esi
        add     $8, %edi
        sub     $8, %edx
many:   cmp     $8, %edx
        jae     eight
        jmp     few
.head rdi: u32, rsi: u32, rdx: u32, rcx: unknown
one:    movzbl  0x10000000(%rsi), %ecx
        mov     %cl, 0x10000000(%rdi)
        inc     %esi
        inc     %edi
        dec     %edx
few:    test    %edx, %edx
        jne     one
        .return
