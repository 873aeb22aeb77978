# Executes ud2 after an operation on vectors, at text offset 3.
.func main ()
        xorps   %xmm0, %xmm0
        ud2
