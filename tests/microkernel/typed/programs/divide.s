# Divides by zero.
.region 0x40000000
.func main ()
        xor     %ecx, %ecx
        xor     %edx, %edx
        mov     $1, %eax
        div     %ecx
        .return
