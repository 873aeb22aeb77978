# expect: read of 1 bytes
# A shift by cl can leave 64 bits.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %ecx
        shl     %cl, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
