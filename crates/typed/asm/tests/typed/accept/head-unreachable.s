# A loop that is entered at its end.
.func f (u32, u32)
        jmp     test
.head rdi: u32, rsi: u32
again:  movb    $0, 0x10000000(%rdi)
        inc     %edi
        dec     %esi
test:   test    %esi, %esi
        jne     again
        .return
