# popcnt, lzcnt and tzcnt.
.func f (any, any)
        mov     %rdi, %rcx
        mov     %rdi, %rdx
        popcnt  %rdi, %rax
        lzcnt   %edi, %ecx
        tzcnt   %rdi, %rdx
        popcnt  0x10000000, %r8
        mov     %rax, 0x10000000
        mov     %rcx, 0x10000000
        .return
