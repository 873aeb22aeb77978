# expect: read of 1 bytes
# Minus a small number is a large one.
.func f (any, any)
        mov     %edi, %edi
        neg     %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
