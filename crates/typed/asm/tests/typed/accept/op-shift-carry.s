# The carry of shifts that do not shift all bits out, after flags of an address.
.func f (any, any)
        lea     f(%rip), %rax
        add     %rdi, %rax
        shr     $7, %dil
        setc    0x10000000
        add     %rdi, %rax
        shl     $15, %si
        setc    0x10000001
        add     %rdi, %rax
        sar     $8, %dil
        setc    0x10000002
        add     %rdi, %rax
        shr     $31, %esi
        setc    0x10000003
        .return
