# Takes the packets of a filter, drops every second one, and executes ud2 when it has seven.
.import packet 0x800b (any) -> view
.import verdict 0x1000 (any) -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
        xor     %ebx, %ebx
.head rbx: any, rax: unknown
next:   xor     %edi, %edi
        call    packet
        test    %rdx, %rdx
        je      none
        inc     %ebx
        cmp     $7, %ebx
        je      trap
        mov     %ebx, %edi
        and     $1, %edi
        call    verdict
        jmp     next
trap:   ud2
none:   xor     %eax, %eax
out:    add     $8, %rsp
        pop     %rbx
        .return
