# Counts for ever.
.region 0x40000000
.func main ()
        xor     %eax, %eax
.head rax: any
again:  inc     %rax
        jmp     again
