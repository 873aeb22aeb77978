# expect: read of 1 bytes
# A comparison of 32 bits says nothing of the upper half.
.func f (any, any)
        cmp     $100, %edi
        ja      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
