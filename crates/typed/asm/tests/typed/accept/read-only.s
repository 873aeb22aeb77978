# Constants.
.func f (any) -> any
        and     $3, %edi
        lea     data(%rip), %rcx
        mov     (%rcx,%rdi,4), %eax
        add     data+16(%rip), %rax
        movups  data(%rip), %xmm0
        .return
.section .rodata
.p2align 2
data:   .long   1, 2, 3, 4
        .quad   5
