# Imports what the kernel does not have.
.import grow 77 (any) -> any
.func main () frame 8
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
        xor     %edi, %edi
        call    grow
out:    add     $8, %rsp
        .return
