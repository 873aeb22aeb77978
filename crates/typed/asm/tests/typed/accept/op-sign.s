# cbw, cwde, cdqe, cwd, cdq, cqo.
.func f (any, any)
        mov     %rdi, %rax
        cbtw
        cwtl
        cltq
        cwtd
        cltd
        cqto
        mov     %rax, 0x10000000
        mov     %edx, 0x10000000
        .return
