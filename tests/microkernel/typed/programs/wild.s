# Stores beyond its memory, where nothing is mapped.
.region 0x40000000
.func main ()
        movb    $1, 0x40020000
        .return
