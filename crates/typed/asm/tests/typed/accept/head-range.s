# A counter in a range with a step.
.func f ()
        xor     %ecx, %ecx
.head rcx: [0, 0x40, 8]
again:  mov     %rcx, 0x10000000(%rcx)
        add     $8, %ecx
        cmp     $0x40, %ecx
        jbe     again
        .return
