# Stores to a page that has memory by then, at an address that is not aligned.
.func main ()
        movups  %xmm0, 0x10000008
        movaps  %xmm0, 0x10000008
        .return
