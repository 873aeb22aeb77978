# The other branch of the comparison.
.func f (any, any)
        cmp     $1000, %rdi
        jb      in
        .return
in:     movzbl  0x10000000(%rdi), %eax
        .return
