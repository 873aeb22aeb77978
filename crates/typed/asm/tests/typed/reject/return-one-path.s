# expect: rbx: expected its value at entry
# The register is restored on one path only.
.func f (any, any) frame 8
        push    %rbx
        mov     %rdi, %rbx
        test    %edi, %edi
        je      over
        mov     (%rsp), %rbx
over:   lea     8(%rsp), %rsp
        .return
