# expect: rbx: expected its value at entry
# The callee cannot restore it.
.func f (any)
        mov     %rdi, %rbx
        jmp     g
.func g ()
        .return
