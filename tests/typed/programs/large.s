# Needs more room than the module has for the code of all programs.
.func main ()
        .return
.section .rodata
        .zero   2200000
