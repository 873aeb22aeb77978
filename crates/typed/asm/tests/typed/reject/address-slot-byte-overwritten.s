# expect: read of 1 bytes
# One byte of the slot was overwritten.
.func f (any, any) frame 16
        sub     $16, %rsp
        mov     %edi, %edi
        mov     %rdi, (%rsp)
        mov     %sil, 7(%rsp)
        mov     (%rsp), %rdi
        movzbl  0x10000000(%rdi), %eax
        add     $16, %rsp
        .return
