# expect: read of 1 bytes.*from -1 room
# The byte in front of the view.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        cmp     %rdx, %rcx
        jae     out
        movzbl  -1(%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
