# expect: read of 1 bytes
# A comparison of 16 bits says nothing of the rest.
.func f (any, any)
        cmp     $100, %di
        ja      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
