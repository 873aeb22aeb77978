# expect: result rax: expected u32, found any
# The signature says 32 bits.
.func f (any) -> u32
        mov     %rdi, %rax
        .return
