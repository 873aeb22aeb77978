# CRC-32 of bytes in the region, bit by bit.
.func crc32 (u32, u32) -> u32
        mov     $-1, %eax
        jmp     test
.head rax: u32, rcx: unknown, rdx: unknown, rdi: u32, rsi: u32
byte:   movzbl  0x10000000(%rdi), %ecx
        xor     %ecx, %eax
        mov     $8, %edx
.head rax: u32, rcx: u32, rdx: u32
bit:    mov     %eax, %ecx
        and     $1, %ecx
        neg     %ecx
        and     $0xedb88320, %ecx
        shr     %eax
        xor     %ecx, %eax
        dec     %edx
        jne     bit
        inc     %edi
        dec     %esi
test:   test    %esi, %esi
        jne     byte
        not     %eax
        .return
