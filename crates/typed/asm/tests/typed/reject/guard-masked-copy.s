# expect: read of 1 bytes
# The mask was applied to a copy.
.func f (any, any)
        mov     %rdi, %rax
        and     $255, %eax
        movzbl  0x10000000(%rdi), %eax
        .return
