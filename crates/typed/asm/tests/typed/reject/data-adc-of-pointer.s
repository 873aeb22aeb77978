# expect: expected \d+ bytes of data, found
# The carry of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        add     %rdi, %rax
        mov     $0, %ecx
        adc     $0, %ecx
        mov     %ecx, 0x10000000
        .return
