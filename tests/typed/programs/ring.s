# Sums 100,000 numbers that another process puts in a ring, which both map: no call, and no copy.
.func main () -> any frame 0
        xor     %eax, %eax
        xor     %edx, %edx
.head rax: any, rcx: unknown, rdx: any, rsi: unknown
again:  mov     0x10000000, %ecx        # numbers put
        cmp     %ecx, %edx
        je      again
        mov     %edx, %esi
        and     $511, %esi
        add     0x10001000(,%rsi,8), %rax
        inc     %edx
        mov     %edx, 0x10000040        # numbers taken
        cmp     $100000, %edx
        jne     again
        .return
