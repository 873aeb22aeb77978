# expect: read of 1 bytes
# A write to dh keeps the bits above.
.func f (any, any)
        mov     %rdi, %rdx
        mov     $0, %dh
        movzbl  0x10000000(%rdx), %eax
        .return
