# expect: head 0x.*, rbx: expected any
# Nothing flows in from above; the register is not what the head says.
.func f (any, u32)
        jmp     entry
.head rbx: any
again:  mov     %rbx, 0x10000000
entry:  test    %esi, %esi
        jne     again
        .return
