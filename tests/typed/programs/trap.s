.func main ()
        nop
        ud2
