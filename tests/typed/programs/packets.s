# Counts the packets of an interface, which it reads where they lie, until a UDP packet to port 9 (discard) comes. Then
# it prints the numbers of all packets, and of those of IPv4, IPv6, ARP, and of TCP, UDP and ICMP over IPv4.
#
# Only packets of 38 bytes are looked at: as many has the header of Ethernet, that of IPv4 without options, and two
# ports. Offsets are relative to that.
.import packet 0x800a (any) -> view
.import write 1 (any, any, any) -> any
.import exit 60 (any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
.head rax: unknown
next:   mov     $3, %edi
        call    packet
        test    %rdx, %rdx
        je      none
        addq    $1, 0x10000000          # all
        mov     $38, %ecx
        cmp     %rdx, %rcx
        ja      next
        movzwl  -26(%rax,%rcx), %esi    # 12: the type, big-endian
        cmp     $0xdd86, %esi
        je      ipv6
        cmp     $0x0608, %esi
        je      arp
        cmp     $0x0008, %esi
        jne     next
        addq    $1, 0x10000008          # IPv4
        movzbl  -15(%rax,%rcx), %esi    # 23: the protocol
        cmp     $6, %esi
        je      tcp
        cmp     $1, %esi
        je      icmp
        cmp     $17, %esi
        jne     next
        addq    $1, 0x10000028          # UDP
        movzbl  -24(%rax,%rcx), %esi    # 14: version, and the header's length in words
        cmp     $0x45, %esi
        jne     next
        movzwl  -2(%rax,%rcx), %esi     # 36: the destination's port, big-endian
        cmp     $0x0900, %esi
        jne     next
        jmp     print
ipv6:   addq    $1, 0x10000010
        jmp     next
arp:    addq    $1, 0x10000018
        jmp     next
tcp:    addq    $1, 0x10000020
        jmp     next
icmp:   addq    $1, 0x10000030
        jmp     next
print:  mov     $512, %ecx              # the line is written from its end
        mov     $56, %esi               # seven numbers
.head rcx: any, rsi: any, rax: unknown, rdx: unknown
number: mov     $10, %r8d
        sub     $8, %esi
        mov     0x10000000(%rsi), %rax
        dec     %ecx
        movb    $32, 0x10000000(%rcx)
.head rcx: any, rax: any, rdx: unknown
digit:  xor     %edx, %edx
        div     %r8
        add     $0x30, %edx             # 0
        dec     %ecx
        mov     %dl, 0x10000000(%rcx)
        test    %rax, %rax
        jne     digit
        test    %esi, %esi
        jne     number
        movb    $10, 0x100001ff
        mov     $512, %edx
        sub     %ecx, %edx
        mov     $0x10000000, %esi
        add     %rcx, %rsi
        mov     $1, %edi
        call    write
        xor     %edi, %edi
        call    exit
none:   xor     %eax, %eax
out:    add     $8, %rsp
        .return
