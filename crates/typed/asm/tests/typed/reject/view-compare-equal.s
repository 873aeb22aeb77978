# expect: read of 1 bytes.*found unknown
# An index that is not the length can be above it.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %rcx
        cmp     %rdx, %rcx
        je      out
        movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
