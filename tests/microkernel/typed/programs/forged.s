# Stores anywhere: the annotation says less of the index than is true.
.region 0x40000000
.func main ()
        xor     %eax, %eax
.head rax: [0, 4095, 1]
more:   movb    $1, 0x40000000(%rax)
        inc     %rax
        jmp     more
