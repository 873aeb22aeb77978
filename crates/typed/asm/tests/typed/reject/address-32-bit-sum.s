# expect: read of 1 bytes.*found
# The sum of two indices of 32 bits with scale 8 passes the guard.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        movabs  $0x110000000, %rax
        add     %rax, %rdi
        movzbl  0x10000000(%rdi,%rsi,8), %eax
        .return
