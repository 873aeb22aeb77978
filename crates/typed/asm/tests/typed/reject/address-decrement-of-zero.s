# expect: read of 1 bytes
# Zero minus one has 64 bits.
.func f (any, any)
        mov     %edi, %edi
        dec     %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
