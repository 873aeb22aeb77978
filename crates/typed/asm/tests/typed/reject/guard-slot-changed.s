# expect: read of 1 bytes
# The slot changed between comparison and read.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %rdi, (%rsp)
        cmpq    $100, (%rsp)
        mov     %rsi, (%rsp)
        ja      out
        mov     (%rsp), %rdi
        movzbl  0x10000000(%rdi), %eax
out:    add     $8, %rsp
        .return
