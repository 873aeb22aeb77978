# expect: read of 4 bytes.*image
# The index passes the data.
.func f (any)
        and     $7, %edi
        lea     data(%rip), %rax
        mov     (%rax,%rdi,4), %eax
        .return
.section .rodata
data:   .long   1, 2, 3, 4
