# expect: read of 1 bytes
# The sign of rax in rdx is all ones or zero.
.func f (any, any)
        mov     %rdi, %rax
        cqo
        movzbl  0x10000000(%rdx), %eax
        .return
