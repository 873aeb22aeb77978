# expect: goes on behind its end
# The function has no end.
.func f (any, any)
        mov     %rdi, %rax
