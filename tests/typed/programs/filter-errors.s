# A verdict on no packet, then on one that it waits for: a number that is none. Returns 0 if both errors are right, but
# 4 without a filter.
.import packet 0x800b (any) -> view
.import verdict 0x1000 (any) -> any
.import exit 60 (any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        mov     $1, %eax
        cmp     $0x5000, %sp
        jb      out
        xor     %edi, %edi
        call    verdict
        cmp     $-2, %rax
        jne     wrong
        xor     %edi, %edi
        call    packet
        mov     $4, %eax
        test    %rdx, %rdx
        je      out
        mov     $2, %edi
        call    verdict
        cmp     $-22, %rax
        jne     wrong
        xor     %edi, %edi
        call    exit
wrong:  mov     $2, %edi
        call    exit
out:    add     $8, %rsp
        .return
