# expect: result rax: expected u32
# On one path it is a number of 64 bits.
.func f (any) -> u32
        mov     %edi, %eax
        test    %edi, %edi
        je      over
        mov     %rdi, %rax
over:   nop
        .return
