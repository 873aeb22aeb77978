# expect: expected \d+ bytes of data, found|flags
# btr keeps the zero flag of an address.
.func f (any, any)
        lea     f(%rip), %rax
        test    $0x1000, %eax
        btr     $0, %edi
        setz    0x10000000
        .return
