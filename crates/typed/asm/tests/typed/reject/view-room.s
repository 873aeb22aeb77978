# expect: read of 8 bytes.*room 1
# One byte is there, eight are read.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        cmp     %rdx, %rcx
        jae     out
        mov     (%rax,%rcx), %rax
out:    xor     %eax, %eax
        .return
