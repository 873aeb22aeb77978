# expect: read of 1 bytes
# The access is on the other side of the guard.
.func f (any, any)
        mov     $0x100000, %eax
        cmp     %rax, %rdi
        jb      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
