# expect: expected \d+ bytes of data, found|flags
# not keeps the flags of an address.
.func f (any, any)
        lea     f(%rip), %rax
        test    $0x1000, %eax
        not     %edi
        setz    0x10000000
        .return
