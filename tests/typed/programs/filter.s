# Filters the packets that an interface receives: it drops requests for an echo (ping) and UDP packets to port 7 (echo),
# over IPv4, and passes all others. When a UDP packet to port 9 (discard) comes, it prints the numbers of all packets
# and of those that it dropped, and ends.
#
# A packet whose 38 first bytes do not lie in one piece has fewer: as many has the header of Ethernet, that of IPv4
# without options, and two ports. Offsets are relative to that. A packet without a verdict passes.
.import packet 0x800b (any) -> view
.import verdict 0x1000 (any) -> any
.import write 1 (any, any, any) -> any
.import exit 60 (any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
.head rax: unknown
next:   mov     $38, %edi
        call    packet
        test    %rdx, %rdx
        je      none
        addq    $1, 0x10000000          # all
        mov     $38, %ecx
        cmp     %rdx, %rcx
        ja      next
        movzwl  -26(%rax,%rcx), %esi    # 12: the type, big-endian
        cmp     $0x0008, %esi           # IPv4
        jne     next
        movzbl  -24(%rax,%rcx), %esi    # 14: version, and the header's length in words
        cmp     $0x45, %esi
        jne     next
        movzwl  -18(%rax,%rcx), %esi    # 20: flags, and the fragment's place: ports are in the first one
        test    $0xff1f, %esi
        jne     next
        movzbl  -15(%rax,%rcx), %esi    # 23: the protocol
        cmp     $1, %esi
        je      icmp
        cmp     $17, %esi
        jne     next
        movzwl  -2(%rax,%rcx), %esi     # 36: the destination's port, big-endian
        cmp     $0x0700, %esi
        je      drop
        cmp     $0x0900, %esi
        jne     next
        jmp     print
icmp:   movzbl  -4(%rax,%rcx), %esi     # 34: the type
        cmp     $8, %esi
        jne     next
drop:   addq    $1, 0x10000008
        xor     %edi, %edi
        call    verdict
        jmp     next
print:  mov     $512, %ecx              # the line is written from its end
        mov     $16, %esi               # two numbers
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
