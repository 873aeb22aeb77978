# The number of a bit of something that is not 0 is an index.
.func f (any, any)
        test    %rdi, %rdi
        je      out
        bsf     %rdi, %rax
        movzbl  0x10000000(%rax), %eax
out:    nop
        .return
