# expect: read of 1 bytes
# A rotation brings low bits up.
.func f (any, any)
        mov     %edi, %edi
        ror     $1, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
