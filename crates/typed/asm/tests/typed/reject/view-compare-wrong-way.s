# expect: read of 1 bytes.*found unknown
# The index is at least the length here.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        cmp     %rdx, %rcx
        jb      out
        movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
