# expect: read of 1 bytes
# The comparison was of another slot.
.func f (any, any) frame 16
        sub     $16, %rsp
        mov     %rdi, (%rsp)
        mov     %rdi, 8(%rsp)
        cmpq    $100, (%rsp)
        ja      out
        mov     8(%rsp), %rdi
        movzbl  0x10000000(%rdi), %eax
out:    add     $16, %rsp
        .return
