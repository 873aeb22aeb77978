# expect: read of 1 bytes
# bts can set bit 63.
.func f (any, any)
        mov     %edi, %edi
        bts     $63, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
