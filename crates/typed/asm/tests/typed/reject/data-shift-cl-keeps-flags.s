# expect: expected \d+ bytes of data, found|flags
# A shift by cl may keep the flags of an address.
.func f (any, any)
        mov     %edi, %ecx
        lea     f(%rip), %rax
        test    $0x1000, %eax
        shl     %cl, %edi
        setz    0x10000000
        .return
