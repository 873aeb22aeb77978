# expect: read of 1 bytes|write of 8 bytes|expected \d+ bytes of data, found
# xadd stores to the address that its operands had before.
.func f (any, any) frame 24
        sub     $24, %rsp
        movq    $16, 8(%rsp)
        mov     %rdi, 16(%rsp)
        mov     $8, %eax
        xadd    %rax, (%rsp,%rax)
        mov     16(%rsp), %rcx
        movzbl  0x10000000(%rcx), %ecx
        add     $24, %rsp
        .return
