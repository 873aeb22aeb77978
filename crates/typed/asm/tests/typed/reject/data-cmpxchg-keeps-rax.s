# expect: read of 1 bytes|expected \d+ bytes of data, found
# cmpxchg of 4 equal bytes keeps the upper half of rax.
.func f (any, any)
        mov     %rdi, %rax
        cmpxchg %esi, 0x10000000
        movzbl  0x10000000(%rax), %ecx
        .return
