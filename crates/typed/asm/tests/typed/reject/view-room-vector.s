# expect: read of 16 bytes.*room 15
# Fifteen bytes are there, a vector is read.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        lea     15(%rcx), %rdi
        cmp     %rdx, %rdi
        ja      out
        movups  -15(%rax,%rdi), %xmm0
out:    xor     %eax, %eax
        .return
