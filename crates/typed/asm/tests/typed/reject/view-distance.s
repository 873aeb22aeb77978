# expect: read of 1 bytes.*found unknown
# The distance of two addresses is no number.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rax, %rcx
        sub     %rax, %rcx
        lea     8(%rax), %rdi
        sub     %rax, %rdi
        movzbl  0x10000000(%rdi), %eax
out:    xor     %eax, %eax
        .return
