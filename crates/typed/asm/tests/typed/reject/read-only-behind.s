# expect: read of 8 bytes.*image
# The last bytes are not all there.
.func f ()
        mov     data+4(%rip), %rax
        .return
.section .rodata
data:   .quad   1
