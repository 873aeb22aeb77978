# Addresses as arithmetic, and of the frame and the image.
.func f (any, any)
        lea     1(%rdi,%rsi,4), %rax
        lea     (,%rdi,8), %ecx
        lea     -3(%rdi), %dx
        lea     f(%rip), %r8
        lea     -8(%rsp), %r9
        mov     %rax, 0x10000000
        mov     %ecx, 0x10000000
        .return
