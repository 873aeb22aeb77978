# expect: read of 1 bytes.*found unknown
# A number below 0 is a large one.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        cmp     %rdx, %rcx
        jae     out
        lea     -1(%rcx), %rdi
        movzbl  1(%rax,%rdi), %eax
out:    xor     %eax, %eax
        .return
