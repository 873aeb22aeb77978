# expect: rbx: expected its value at entry
# A conditional jump can be a tail call.
.func f (any)
        mov     %rdi, %rbx
        test    %edi, %edi
        je      g
        ud2
        .return
.func g ()
        .return
