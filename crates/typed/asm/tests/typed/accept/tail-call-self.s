# A jump to the own entry is a tail call.
.func f (any) -> any
        mov     %rdi, %rax
        shr     %rdi
        je      out
        test    %edi, %edi
        jne     f
out:    .return
