# expect: read of 1 bytes
# ah is not al.
.func f (any, any)
        mov     %rdi, %rax
        cmp     $1, %ah
        ja      out
        movzbl  0x10000000(%rax), %eax
out:    nop
        .return
