# Made for a region at another address.
.region 0x10000000
.func main ()
        .return
