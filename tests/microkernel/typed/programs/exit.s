# Ends with code 0, and something in the upper half of the register.
.region 0x40000000
.import exit 18 (any) -> any
.entry main
.func main () frame 8
        cmp     $0x5000, %sp
        jb      out
        sub     $8, %rsp
        movabs  $0x100000000, %rdi
        call    exit
        add     $8, %rsp
out:    .return
