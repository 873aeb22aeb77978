# expect: result rax: expected u8, found u16
# The signature says 8 bits.
.func f (any) -> u8
        movzwl  %di, %eax
        .return
