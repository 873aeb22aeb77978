# expect: expected \d+ bytes of data, found
# A number shifted by part of an address is no data.
.func f (any, any)
        lea     f(%rip), %rcx
        mov     $1, %eax
        shl     %cl, %eax
        mov     %eax, 0x10000000
        .return
