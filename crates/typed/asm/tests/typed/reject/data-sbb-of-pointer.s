# expect: expected \d+ bytes of data, found
# The borrow of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        sub     %rdi, %rax
        sbb     %rcx, %rcx
        mov     %rcx, 0x10000000
        .return
