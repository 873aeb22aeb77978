# expect: read of 1 bytes|expected \d+ bytes of data, found
# bsf of 0 keeps all 64 bits of its destination.
.func f (any, any)
        mov     %rdi, %rax
        bsf     %esi, %eax
        movzbl  0x10000000(%rax), %ecx
        .return
