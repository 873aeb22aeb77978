# Stores behind the memory of the region, at text offset 3.
.func main ()
        xorps   %xmm0, %xmm0
        movups  %xmm0, 0x12000000
        .return
