# A shift to the left drops the bytes that are not data. gcc reads all of a slot of which it wrote half.
.func f (any, any) frame 8
        sub     $8, %rsp
        movl    %edi, (%rsp)
        mov     (%rsp), %rax
        shl     $52, %rax
        setc    0x10000000
        mov     %rax, 0x10000000
        mov     (%rsp), %rax
        shl     $32, %rax
        js      out
        mov     %rax, 0x10000000
        mov     (%rsp), %rax
        mov     %rax, %rcx
        shl     $40, %rax
        shl     $56, %rcx
        or      %rcx, %rax
        mov     %rax, 0x10000000
        lea     f(%rip), %rdx
        add     %rdi, %rdx
        mov     %sil, %dl
        shl     $8, %dx
        mov     %dx, 0x10000000
out:    add     $8, %rsp
        .return
