# Repeats getpid as often as the argument says, in a program that uses a vector register. Returns the last result.
.import getpid 39 () -> any
.func main (any) -> any frame 8
        push    %rbx
        mov     $-1, %rax
        cmp     $0x5000, %sp
        jb      out
        mov     %rdi, %rbx
        xorps   %xmm0, %xmm0
.head rbx: any, rax: any, rdi: unknown
again:  call    getpid
        dec     %rbx
        jne     again
out:    pop     %rbx
        .return
