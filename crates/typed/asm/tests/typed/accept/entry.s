# The program starts at a function that is not its first.
.entry main
.func helper ()
        .return
.func main ()
        .return
