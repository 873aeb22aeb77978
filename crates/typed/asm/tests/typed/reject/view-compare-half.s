# expect: read of 1 bytes.*found unknown
# The lower half of an index is below the length.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %rcx
        cmp     %edx, %ecx
        jae     out
        movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
