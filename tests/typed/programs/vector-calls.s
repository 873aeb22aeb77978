# With vector registers: asks for its process's id for ever: a timer finds it outside of its own code nearly always.
.import getpid 39 () -> any
.func main () frame 8
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
.head rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown
.head r11: unknown
again:  pcmpeqd %xmm0, %xmm0
        call    getpid
        jmp     again
out:    add     $8, %rsp
        .return
