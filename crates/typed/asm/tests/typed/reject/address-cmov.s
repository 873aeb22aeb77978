# expect: read of 1 bytes
# A conditional move may not move.
.func f (any, any)
        mov     %esi, %esi
        cmp     %rsi, %rdi
        cmove   %rsi, %rdi
        add     %rdi, %rdi
        movzbl  0x10000000(%rdi,%rsi,8), %eax
        .return
