# The process's id.
.import getpid 39 () -> any
.func main () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        call    getpid
out:    add     $8, %rsp
        .return
