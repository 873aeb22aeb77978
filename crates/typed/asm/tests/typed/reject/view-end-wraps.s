# expect: read of 8 bytes.*from -8 room
# The index plus 8 can be 0.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %rcx
        lea     8(%rcx), %rdi
        cmp     %rdx, %rdi
        ja      out
        mov     -8(%rax,%rdi), %rax
out:    xor     %eax, %eax
        .return
