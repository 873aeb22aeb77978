# mov between registers, memory and immediates, of each size.
.func f (any, any)
        mov     %rdi, %rax
        mov     %edi, %eax
        mov     %di, %ax
        mov     %dil, %al
        mov     %rdi, %rdx
        mov     %al, %dh
        mov     %ah, %cl
        mov     $1, %al
        mov     $1, %ax
        mov     $1, %eax
        mov     $-1, %rax
        movabs  $0x123456789abcdef, %rax
        mov     %rdi, 0x10000000
        mov     %edi, 0x10000000
        mov     %di, 0x10000000
        mov     %dil, 0x10000000
        mov     %dh, 0x10000000
        movb    $1, 0x10000000
        movw    $1, 0x10000000
        movl    $1, 0x10000000
        movq    $-1, 0x10000000
        mov     0x10000000, %rcx
        mov     0x10000000, %ecx
        mov     0x10000000, %cx
        mov     0x10000000, %cl
        movnti  %rdi, 0x10000000
        movnti  %edi, 0x10000000
        .return
