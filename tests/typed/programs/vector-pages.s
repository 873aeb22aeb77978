# Reads every second page, which is zero; then stores 17, twice, across the end of each of 4,095 pages, and adds them up.
.func main () -> any
        pxor    %xmm1, %xmm1
        mov     $0x10000ff0, %eax
.head rax: [0x10000ff0, 0x10ffeff0, 8192]
read:   por     (%rax), %xmm1
        add     $8192, %rax
        cmp     $0x11000ff0, %rax
        jne     read
        mov     $17, %eax
        movq    %rax, %xmm0
        punpcklqdq %xmm0, %xmm0
        mov     $0x10000ff8, %eax
.head rax: [0x10000ff8, 0x10ffeff8, 4096]
fill:   movups  %xmm0, (%rax)
        add     $4096, %rax
        cmp     $0x10fffff8, %rax
        jne     fill
        mov     $0x10000ff8, %eax
.head rax: [0x10000ff8, 0x10ffeff8, 4096]
add:    movdqu  (%rax), %xmm2
        paddq   %xmm2, %xmm1
        add     $4096, %rax
        cmp     $0x10fffff8, %rax
        jne     add
        mov     $1, %eax
        movq    %xmm1, %rcx
        cmp     $69615, %rcx
        jne     out
        psrldq  $8, %xmm1
        movq    %xmm1, %rcx
        cmp     $69615, %rcx
        jne     out
        mov     $17, %eax
out:    .return
