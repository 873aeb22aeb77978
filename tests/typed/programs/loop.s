# Counts for ever.
.func main ()
        xor     %eax, %eax
.head rax: any
again:  inc     %rax
        jmp     again
