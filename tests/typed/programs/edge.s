# Stores behind the first MiB, and returns 5.
.func main () -> any
        movb    $1, 0x10100000
        mov     $5, %eax
        .return
