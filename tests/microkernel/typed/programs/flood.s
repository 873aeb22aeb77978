# Reports an empty line again and again.
.region 0x40000000
.indirect
.import report 27 (any, any) -> any
.entry main
.func main () frame 8
        cmp     $0x5000, %sp
        jb      out
        sub     $8, %rsp
.head rax: unknown
again:  mov     $0x100, %edi
        xor     %esi, %esi
        call    report
        jmp     again
out:    .return
