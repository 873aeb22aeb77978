# expect: expected \d+ bytes of data, found
# bsr of 0 keeps an address in its destination.
.func f (any, any)
        lea     f(%rip), %rax
        bsr     %esi, %eax
        mov     %rax, 0x10000000
        .return
