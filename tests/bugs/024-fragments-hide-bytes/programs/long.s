# Asks for all of each packet, and drops those of which it sees less than 1,000 bytes.
.import packet 0x800b (any) -> view
.import verdict 0x1000 (any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
.head rax: unknown
next:   mov     $65536, %edi
        call    packet
        test    %rdx, %rdx
        je      none
        cmp     $1000, %rdx
        jae     next
        xor     %edi, %edi
        call    verdict
        jmp     next
none:   xor     %eax, %eax
out:    add     $8, %rsp
        .return
