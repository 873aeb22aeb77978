# With vector registers: divides by zero, at text offset 9.
.func main () -> any
        xorps   %xmm0, %xmm0
        xor     %eax, %eax
        xor     %edx, %edx
        xor     %ecx, %ecx
        div     %ecx
        .return
