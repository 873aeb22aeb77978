# expect: read of 1 bytes.*found unknown
# An address that was computed with is none.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        and     $-16, %rax
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
        movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
