# expect: read of 1 bytes
# The region changes between the comparison and the second read.
.func f (any, any)
        cmpq    $100, 0x10000000
        ja      out
        mov     0x10000000, %rdi
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
