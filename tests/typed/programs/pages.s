# Writes a byte to each of 4,096 pages, then adds them up: 17 times 4,096, divided by 4,096.
.func main () -> any
        mov     $0x10000000, %eax
.head rax: [0x10000000, 0x10fff000, 4096]
fill:   movb    $17, (%rax)
        add     $4096, %rax
        cmp     $0x11000000, %rax
        jne     fill
        xor     %ecx, %ecx
        mov     $0x10000000, %eax
.head rax: [0x10000000, 0x10fff000, 4096], rcx: any, rdx: unknown
add:    movzbl  (%rax), %edx
        add     %rdx, %rcx
        add     $4096, %rax
        cmp     $0x11000000, %rax
        jne     add
        mov     %rcx, %rax
        shr     $12, %rax
        .return
