# expect: read of 8 bytes
# An index of 33 bits with scale 8 passes the guard.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        add     %rsi, %rdi
        mov     0x10000000(,%rdi,8), %rax
        .return
