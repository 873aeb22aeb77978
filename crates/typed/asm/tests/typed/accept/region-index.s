# 32-bit indices with scale and displacement.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        mov     0x10000000(%rdi), %rax
        mov     0x10000000(%rdi,%rsi,4), %rax
        mov     0x7fffffff(%rsi,%rsi), %rax
        mov     %rax, 0x10000000(,%rdi,8)
        .return
