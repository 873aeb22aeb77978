# Takes the packets of a filter, then waits until it can read a byte of handle 0.
.import packet 0x800b (any) -> view
.import read 0 (any, any, any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
.head rax: unknown
next:   xor     %edi, %edi
        call    packet
        test    %rdx, %rdx
        jne     next
        xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    read
        xor     %eax, %eax
out:    add     $8, %rsp
        .return
