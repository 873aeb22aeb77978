# Adds for ever.
.func main ()
        xor     %eax, %eax
.head rax: any
again:  addpd   %xmm1, %xmm0
        inc     %rax
        jmp     again
