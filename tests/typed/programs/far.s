# Reads at the largest distance that an index and an offset of 32 bits make.
.func main () -> u8
        mov     $0xffffffff, %eax
        movzbl  0x7fffffff(%rax,%rax,8), %eax
        .return
