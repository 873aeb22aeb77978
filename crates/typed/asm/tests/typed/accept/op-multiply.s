# imul of two and three operands.
.func f (any, any)
        imul    %rsi, %rdi
        imul    %esi, %edi
        imul    %si, %di
        imul    $3, %rdi, %rax
        imul    $1000, %edi, %eax
        imul    $3, 0x10000000, %rcx
        imul    0x10000000, %rdi
        imul    $1000, 0x10000000, %cx
        mov     %rax, 0x10000000
        mov     %rcx, 0x10000000
        .return
