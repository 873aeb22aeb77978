# expect: read of 1 bytes
# The result is any number.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    g
        movzbl  0x10000000(%rax), %eax
out:    .return
.func g () -> any
        mov     0x10000000, %rax
        .return
