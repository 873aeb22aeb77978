# expect: expected \d+ bytes of data, found
# Whether the stack pointer equals a number is no data.
.func f (any, any)
        cmp     %rdi, %rsp
        sete    %al
        mov     %al, 0x10000000
        .return
