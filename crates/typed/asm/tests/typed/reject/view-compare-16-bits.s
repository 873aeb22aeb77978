# expect: read of 1 bytes.*found unknown
# Sixteen bits of an index are less than sixteen bits of the length.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        movzwl  0x10000000, %ecx
        cmp     %dx, %cx
        jae     out
        movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
