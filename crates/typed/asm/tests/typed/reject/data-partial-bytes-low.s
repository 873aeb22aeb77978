# expect: expected \d+ bytes of data, found
# Two bytes of data do not make four.
.func f (any, any)
        lea     f(%rip), %rax
        mov     %di, %ax
        mov     %eax, 0x10000000
        .return
