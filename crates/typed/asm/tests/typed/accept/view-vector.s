# Sixteen bytes of a view at once; constant offsets in front of a compared end, and behind an index.
.import packet 0x8000 (any) -> view
.func f (any)
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     $20, %ecx
        cmp     %rcx, %rdx
        jb      out
        add     %rcx, %rax
        movups  -16(%rax), %xmm0
        mov     -20(%rax), %ecx
        movzwl  -2(%rax), %ecx
        movups  %xmm0, 0x10000000
out:    .return
