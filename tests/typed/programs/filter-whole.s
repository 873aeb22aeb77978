# Asks for the whole of each packet of a filter, reads all that it sees, and drops nothing. When a UDP packet to port 9
# comes, it ends with 0 if it has seen a packet of more than 20,000 bytes, else with 1.
.import packet 0x800b (any) -> view
.import exit 60 (any) -> any
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
        cmp     $20000, %rdx
        jbe     read
        movb    $1, 0x10000000
read:   xor     %ecx, %ecx
        xor     %esi, %esi
.head rcx: u32, rsi: any, rdi: unknown
byte:   cmp     %rdx, %rcx
        jae     port
        movzbl  (%rax,%rcx), %edi
        add     %rdi, %rsi
        inc     %ecx
        jmp     byte
port:   mov     $38, %ecx
        cmp     %rdx, %rcx
        ja      next
        movzwl  -2(%rax,%rcx), %esi     # 36: the destination's port, if it is UDP over IPv4
        cmp     $0x0900, %esi
        jne     next
        movzbl  -15(%rax,%rcx), %esi    # 23: the protocol
        cmp     $17, %esi
        jne     next
        movzbl  0x10000000, %edi
        xor     $1, %edi
        call    exit
none:   xor     %eax, %eax
out:    add     $8, %rsp
        .return
