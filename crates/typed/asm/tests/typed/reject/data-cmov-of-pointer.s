# expect: expected \d+ bytes of data, found
# A move on such a condition is no data.
.func f (any, any)
        lea     f(%rip), %rax
        cmp     %rdi, %rax
        mov     $1, %ecx
        cmovb   %edi, %ecx
        mov     %ecx, 0x10000000
        .return
