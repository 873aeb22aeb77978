# cmpxchg of registers and memory.
.func f (any, any)
        mov     %rdi, %rax
        cmpxchg %rsi, %rdi
        lock    cmpxchg %rsi, 0x10000000
        je      out
        mov     %rax, 0x10000000
        lock    cmpxchg %sil, 0x10000000
        lock    cmpxchg %si, 0x10000000
        lock    cmpxchg %esi, 0x10000000
        mov     %eax, 0x10000000
out:    nop
        .return
