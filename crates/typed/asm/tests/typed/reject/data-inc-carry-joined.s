# expect: expected \d+ bytes of data, found|flags
# The carry of an address survives a join with other flags.
.func f (any, any)
        lea     f(%rip), %rax
        test    %esi, %esi
        je      other
        add     %rdi, %rax
        mov     $1, %ecx
        inc     %ecx
        jmp     both
other:  cmp     %rsi, %rdi
both:   setc    0x10000000
        .return
