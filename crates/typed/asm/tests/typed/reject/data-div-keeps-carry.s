# expect: expected \d+ bytes of data, found|flags
# div may keep the carry of an address.
.func f (any, any)
        lea     f(%rip), %rcx
        add     %rdi, %rcx
        mov     $3, %eax
        inc     %eax
        mov     $0, %edx
        mov     $3, %esi
        div     %esi
        setc    0x10000000
        .return
