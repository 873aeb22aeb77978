# A mask bounds an index.
.func f (any, any)
        and     $0xfff, %edi
        movzbl  0x10000000(%rdi), %eax
        and     $-8, %rsi
        shr     $40, %rsi
        mov     0x10000000(%rsi,%rdi,8), %rax
        .return
