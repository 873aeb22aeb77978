# expect: read of 1 bytes|expected \d+ bytes of data, found
# cmpxchg of 4 unequal bytes keeps the upper half of a register.
.func f (any, any)
        mov     %esi, %eax
        cmpxchg %esi, %edi
        movzbl  0x10000000(%rdi), %ecx
        .return
