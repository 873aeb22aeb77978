# expect: expected \d+ bytes of data, found|flags
# div may keep the flags of an address.
.func f (any, any)
        lea     f(%rip), %rcx
        test    $0x1000, %ecx
        mov     $4, %eax
        mov     $0, %edx
        mov     $3, %esi
        div     %esi
        setz    0x10000000
        .return
