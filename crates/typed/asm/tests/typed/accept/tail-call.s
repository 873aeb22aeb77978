# A tail call to a function, and one on a condition.
.func f (any) -> any
        test    %rdi, %rdi
        je      g
        mov     %edi, %edi
        jmp     h
.func g (any) -> any
        mov     %rdi, %rax
        .return
.func h (u32) -> u32
        mov     %edi, %eax
        .return
