# expect: expected \d+ bytes of data, found
# The slot was written on one path only.
.func f (any, any) frame 8
        sub     $8, %rsp
        test    %edi, %edi
        je      over
        mov     %rdi, (%rsp)
over:   mov     (%rsp), %rax
        mov     %rax, 0x10000000
        add     $8, %rsp
        .return
