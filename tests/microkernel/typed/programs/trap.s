# Ends by ud2.
.region 0x40000000
.func main ()
        ud2
