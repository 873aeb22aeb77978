# Anything may be passed as unknown: an address, a callee-saved register, what a call left. Data stays data there only
# for the caller.
.func f (any, any) -> any
        cmp     $0x5000, %sp
        jb      out
        mov     %rsp, %rdi
        mov     %rbx, %rsi
        mov     $3, %edx
        call    g
        mov     $4, %edx
        jmp     g
out:    xor     %eax, %eax
        .return
.func g (unknown, unknown, u8) -> any
        jmp     h
.func h (unknown, unknown, unknown, unknown, unknown, unknown) -> any
        mov     $1, %edi
        lea     (%rdi,%rdi), %rax
        .return
