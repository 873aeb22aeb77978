# Results are within their types.
.func f (u8) -> u8
        mov     %rdi, %rax
        .return
.func g (u16) -> u32
        mov     %rdi, %rax
        .return
