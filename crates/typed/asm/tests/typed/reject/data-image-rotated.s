# expect: expected \d+ bytes of data, found
# A rotated address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        rol     $8, %rax
        mov     %al, 0x10000000
        .return
