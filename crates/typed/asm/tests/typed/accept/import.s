# Imports are called, and left to by a tail call.
.import log 7 (any, u32) -> any
.import exit 1 (u32)
.func f (any, u32)
        cmp     $0x5000, %sp
        jb      out
        call    log
        mov     %eax, %edi
        jmp     exit
out:    .return
