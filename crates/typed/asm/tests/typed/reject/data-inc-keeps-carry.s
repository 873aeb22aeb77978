# expect: expected \d+ bytes of data, found
# inc keeps the carry of an address.
.func f (any, any)
        lea     f(%rip), %rax
        add     %rdi, %rax
        inc     %ecx
        mov     $1, %edx
        inc     %edx
        setc    0x10000000
        .return
