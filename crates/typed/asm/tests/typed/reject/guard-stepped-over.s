# expect: read of 1 bytes
# A path leads around the guard.
.func f (any, any)
        test    %esi, %esi
        je      access
        cmp     $100, %rdi
        ja      out
access: movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
