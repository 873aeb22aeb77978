# Divides by zero, at text offset 6.
.func main () -> any
        xor     %eax, %eax
        xor     %edx, %edx
        xor     %ecx, %ecx
        div     %ecx
        .return
