# Prints the FNV-1a hash, of 64 bits, of the file that is standard input. It reads the page cache where it lies.
# Returns 0, or 1 if it did not see the whole file.
.import view 0x8009 (any, any) -> view
.import fstat 5 (any, any) -> any
.import write 1 (any, any, any) -> any
.func main () -> any frame 32
        push    %rbx
        push    %rbp
        push    %r12
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
        movabs  $0xcbf29ce484222325, %rbx
        movabs  $0x100000001b3, %r12
        xor     %ebp, %ebp
.head rax: unknown, rbx: any, rbp: any
next:   xor     %edi, %edi
        mov     %rbp, %rsi
        call    view
        xor     %ecx, %ecx
        cmp     %rdx, %rcx
        jae     print
.head
more:   movzbl  (%rax,%rcx), %esi
        xor     %rsi, %rbx
        imul    %r12, %rbx
        inc     %rbp
        inc     %rcx
        cmp     %rdx, %rcx
        jb      more
        jmp     next
print:  mov     $16, %ecx
        movb    $10, 0x10000010
.head rax: unknown, rcx: any
digit:  dec     %ecx
        mov     %ebx, %eax
        and     $15, %eax
        shr     $4, %rbx
        add     $0x30, %eax             # 0
        cmp     $0x3a, %eax
        jb      put
        add     $0x27, %eax             # a
put:    mov     %al, 0x10000000(%rcx)
        test    %ecx, %ecx
        jne     digit
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $17, %edx
        call    write
        xor     %edi, %edi
        mov     $0x10000100, %esi
        call    fstat
        xor     %eax, %eax
        cmp     0x10000130, %rbp        # st_size
        setne   %al
out:    add     $8, %rsp
        pop     %r12
        pop     %rbp
        pop     %rbx
        .return
