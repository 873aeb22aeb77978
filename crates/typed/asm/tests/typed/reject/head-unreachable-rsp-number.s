# expect: rsp: expected
# The head says that the stack pointer is a number.
.func f (any, u32)
        jmp     entry
.head rsp: any
again:  nop
entry:  test    %esi, %esi
        jne     again
        .return
