# Calls import 0 with one argument, and with addresses of its stack and its code in the registers of others.
.import one 0 (any) -> any
.import six 0 (any, any, any, any, any, any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        mov     $0, %edi
        mov     %rsp, %rsi
        lea     0(%rip), %rdx
        call    one
out:    add     $8, %rsp
        .return
