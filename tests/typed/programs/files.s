# Calls with a file of 8 bytes, abcdefgh, as handle 0 and a pipe as handle 1, and counts what is as it must be: 36. Then the
# file is hhhhefgh. Of each kind of transfer the second one takes another way through the module than the first one.
.import read 0 (any, any, any) -> any
.import write 1 (any, any, any) -> any
.import fstat 5 (any, any) -> any
.import lseek 8 (any, any, any) -> any
.import pread 17 (any, any, any, any) -> any
.import pwrite 18 (any, any, any, any) -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      out
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $3, %edx
        call    read
        cmp     $3, %rax
        jne     out
        inc     %ebx
        cmpb    $'a', 0x10000000
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $3, %edx
        call    read
        cmp     $3, %rax
        jne     out
        inc     %ebx
        cmpb    $'d', 0x10000000
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $1, %esi
        mov     $0, %edx
        call    lseek
        cmp     $1, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    read
        cmp     $1, %rax
        jne     out
        inc     %ebx
        cmpb    $'b', 0x10000000
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $2, %edx
        mov     $6, %ecx
        call    pread
        cmp     $2, %rax
        jne     out
        inc     %ebx
        cmpb    $'g', 0x10000000
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $7, %ecx
        call    pread
        cmp     $1, %rax
        jne     out
        inc     %ebx
        cmpb    $'h', 0x10000000
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0, %esi
        mov     $1, %edx
        call    lseek
        cmp     $2, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $0, %ecx
        call    pwrite
        cmp     $1, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $1, %ecx
        call    pwrite
        cmp     $1, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    write
        cmp     $1, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    write
        cmp     $1, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0, %esi
        mov     $2, %edx
        call    lseek
        cmp     $8, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $4, %edx
        call    read
        cmp     $0, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        call    fstat
        cmp     $0, %rax
        jne     out
        inc     %ebx
        cmpq    $8, 0x10000030         # the size
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $-1, %rcx
        call    pread
        cmp     $-22, %rax              # EINVAL
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $-1, %rcx
        call    pwrite
        cmp     $-22, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0, %esi
        mov     $9, %edx
        call    lseek
        cmp     $-22, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $-1, %rsi
        mov     $0, %edx
        call    lseek
        cmp     $-22, %rax
        jne     out
        inc     %ebx
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $0, %ecx
        call    pread
        cmp     $-29, %rax              # ESPIPE: a pipe
        jne     out
        inc     %ebx
        mov     $1, %edi
        mov     $0, %esi
        mov     $0, %edx
        call    lseek
        cmp     $-29, %rax
        jne     out
        inc     %ebx
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    read
        cmp     $-9, %rax               # EBADF: only for writing
        jne     out
        inc     %ebx
        mov     $9, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    read
        cmp     $-9, %rax
        jne     out
        inc     %ebx
        mov     $9, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        mov     $0, %ecx
        call    pread
        cmp     $-9, %rax
        jne     out
        inc     %ebx
        mov     $9, %edi
        mov     $0x10000000, %esi
        call    fstat
        cmp     $-9, %rax
        jne     out
        inc     %ebx
        mov     $9, %edi
        mov     $0, %esi
        mov     $0, %edx
        call    lseek
        cmp     $-9, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0xfffffff, %esi
        mov     $1, %edx
        call    read
        cmp     $-14, %rax              # EFAULT
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0xfffffff, %esi
        mov     $1, %edx
        mov     $0, %ecx
        call    pwrite
        cmp     $-14, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0xfffffff, %esi
        call    fstat
        cmp     $-14, %rax
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x12000000, %esi
        call    fstat
        cmp     $-14, %rax              # no memory there
        jne     out
        inc     %ebx
        mov     $0, %edi
        mov     $0x12000000, %esi
        mov     $1, %edx
        mov     $0, %ecx
        call    pread
        cmp     $-14, %rax
        jne     out
        inc     %ebx
out:    mov     %ebx, %eax
        add     $8, %rsp
        pop     %rbx
        .return
