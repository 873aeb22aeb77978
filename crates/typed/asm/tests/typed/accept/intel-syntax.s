# Intel's syntax.
.intel_syntax noprefix
.func f (u32, u32) -> any
        mov     eax, dword ptr [rdi + rsi*4 + 0x10000000]
        lea     rax, [rax + rax*2]
        .return
