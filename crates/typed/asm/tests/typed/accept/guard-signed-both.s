# Two signed comparisons bound it too.
.func f (any, any)
        test    %rdi, %rdi
        js      out
        cmp     $1000, %rdi
        jg      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
