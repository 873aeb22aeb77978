# Counts for ever, and needs more than half of the module's room for code.
.func main ()
        xor     %eax, %eax
.head rax: any
again:  inc     %rax
        jmp     again
.section .rodata
        .zero   1200000
