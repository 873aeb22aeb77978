# Stores to its frame, at an address that is not aligned, at text offset 4.
.func main () frame 40
        sub     $40, %rsp
        movaps  %xmm0, 8(%rsp)
        add     $40, %rsp
        .return
