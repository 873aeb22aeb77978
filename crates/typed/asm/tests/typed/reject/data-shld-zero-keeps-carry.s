# expect: expected \d+ bytes of data, found|flags
# shld by 0 keeps the carry of an address.
.func f (any, any)
        lea     f(%rip), %rax
        add     %rdi, %rax
        mov     $1, %ecx
        inc     %ecx
        shld    $0, %edi, %esi
        setc    0x10000000
        .return
