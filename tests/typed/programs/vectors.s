# Uses a vector register.
.func main ()
        xorps   %xmm0, %xmm0
        .return
