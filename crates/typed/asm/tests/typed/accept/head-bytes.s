# A register of which one byte is data.
.func f (any)
        mov     %dil, %al
.head rax: bytes 0x01, rdi: any
again:  mov     %al, 0x10000000
        dec     %edi
        jne     again
        .return
