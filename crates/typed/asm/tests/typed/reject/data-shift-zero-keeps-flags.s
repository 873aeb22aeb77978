# expect: expected \d+ bytes of data, found|flags
# A shift by 0 keeps the flags of an address.
.func f (any, any)
        lea     f(%rip), %rax
        test    $0x1000, %eax
        shl     $0, %edi
        setz    0x10000000
        .return
