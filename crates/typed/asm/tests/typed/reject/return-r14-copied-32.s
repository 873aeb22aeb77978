# expect: r14: expected its value at entry
# 32 bits of it do not restore it.
.func f (any, any)
        mov     %r14d, %eax
        mov     %eax, %r14d
        .return
