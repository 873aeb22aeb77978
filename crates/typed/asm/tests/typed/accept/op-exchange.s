# xchg of registers and memory.
.func f (any, any)
        xchg    %rdi, %rsi
        xchg    %edi, %esi
        xchg    %dil, %sil
        mov     %rdi, %rax
        xchg    %rax, %rsi
        xchg    %rdi, 0x10000000
        xchg    %sil, 0x10000000
        mov     %rdi, 0x10000000
        mov     %rax, 0x10000000
        .return
