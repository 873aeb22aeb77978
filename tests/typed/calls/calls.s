# Repeats an operation as often as the first argument says. The second one says which; the third one, of how many bytes.
# Returns the operation's last result.
.import read 0 (any, any, any) -> any
.import write 1 (any, any, any) -> any
.import fstat 5 (any, any) -> any
.import pread 17 (any, any, any, any) -> any
.import pwrite 18 (any, any, any, any) -> any
.import getpid 39 () -> any
.func main (any, any, any) -> any frame 24
        push    %rbx
        push    %rbp
        sub     $8, %rsp
        mov     $-1, %rax
        cmp     $0x5000, %sp
        jb      out
        mov     %rdi, %rbx
        mov     %rdx, %rbp
        cmp     $1, %esi
        je      fstats
        cmp     $2, %esi
        je      reads
        cmp     $3, %esi
        je      writes
        cmp     $4, %esi
        je      preads
        cmp     $5, %esi
        je      pwrites
        cmp     $6, %esi
        je      pipes
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
getpids:
        call    getpid
        dec     %rbx
        jne     getpids
        jmp     out
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
fstats: xor     %edi, %edi
        mov     $0x10000000, %esi
        call    fstat
        dec     %rbx
        jne     fstats
        jmp     out
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
reads:  xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     %rbp, %rdx
        call    read
        dec     %rbx
        jne     reads
        jmp     out
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
writes: xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     %rbp, %rdx
        call    write
        dec     %rbx
        jne     writes
        jmp     out
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
preads: xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     %rbp, %rdx
        xor     %ecx, %ecx
        call    pread
        dec     %rbx
        jne     preads
        jmp     out
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
pwrites:
        xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     %rbp, %rdx
        xor     %ecx, %ecx
        call    pwrite
        dec     %rbx
        jne     pwrites
        jmp     out
# One operation is two calls: what is written to a pipe is read again.
.head rbx: any, rax: any, rdi: unknown, rsi: unknown, rdx: unknown
pipes:  mov     $1, %edi
        mov     $0x10000000, %esi
        mov     %rbp, %rdx
        call    write
        xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     %rbp, %rdx
        call    read
        dec     %rbx
        jne     pipes
out:    add     $8, %rsp
        pop     %rbp
        pop     %rbx
        .return
