# expect: read of 1 bytes
# Copies are not followed over a head.
.func f (any, u32)
        mov     %rdi, %rax
.head
again:  cmp     $100, %rax
        ja      out
        movzbl  0x10000000(%rdi), %ecx
        test    %esi, %esi
        jne     again
out:    nop
        .return
