# expect: read of 8 bytes
# The guard allows more than the guard region has.
.func f (any, any)
        movabs  $0xa00000000, %rax
        cmp     %rax, %rdi
        ja      out
        mov     0x10000000(%rdi), %rax
out:    nop
        .return
