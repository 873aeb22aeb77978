# Nops of all lengths, endbr64, pause, fences.
.func f (any, any)
        endbr64
        nop
        xchg    %ax, %ax
        nopl    (%rax)
        nopl    0(%rax,%rax)
        nopw    0(%rax,%rax)
.p2align 4
        pause
        lfence
        mfence
        sfence
        .nops   15
        .return
