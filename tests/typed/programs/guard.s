# Stores behind the memory of the region, at text offset 5.
.func main ()
        mov     $0x12000000, %eax
        movb    $1, (%rax)
        .return
