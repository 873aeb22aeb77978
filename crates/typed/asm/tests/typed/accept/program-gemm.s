# A product of two matrices of n rows of doubles.
.func gemm (u32, u32, u32, u32) frame 8
        push    %rbx
        test    %ecx, %ecx
        je      out
        xor     %r8d, %r8d
.head r8: u32, rax: unknown, rbx: unknown, r9: unknown, r10: unknown
row:    xor     %r9d, %r9d
.head r9: u32, rax: unknown, rbx: unknown, r10: unknown
column: xor     %r10d, %r10d
        xorps   %xmm0, %xmm0
.head r10: u32, rax: unknown, rbx: unknown
term:   mov     %r8d, %eax
        imul    %ecx, %eax
        add     %r10d, %eax
        mov     %r10d, %ebx
        imul    %ecx, %ebx
        add     %r9d, %ebx
        movsd   0x10000000(%rsi,%rax,8), %xmm1
        mulsd   0x10000000(%rdx,%rbx,8), %xmm1
        addsd   %xmm1, %xmm0
        inc     %r10d
        cmp     %ecx, %r10d
        jb      term
        mov     %r8d, %eax
        imul    %ecx, %eax
        add     %r9d, %eax
        movsd   %xmm0, 0x10000000(%rdi,%rax,8)
        inc     %r9d
        cmp     %ecx, %r9d
        jb      column
        inc     %r8d
        cmp     %ecx, %r8d
        jb      row
out:    pop     %rbx
        .return
