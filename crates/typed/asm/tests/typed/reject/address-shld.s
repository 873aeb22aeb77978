# expect: read of 1 bytes
# shld brings bits of the other operand.
.func f (any, any)
        mov     %edi, %edi
        shld    $40, %rsi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
