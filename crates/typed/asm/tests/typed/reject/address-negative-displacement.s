# expect: read of 1 bytes.*found \[0xfffffff
# The displacement leads below the region.
.func f (any, any)
        mov     %edi, %edi
        movzbl  0xfffffff(%rdi), %eax
        .return
