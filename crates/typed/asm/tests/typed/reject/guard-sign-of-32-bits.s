# expect: read of 1 bytes
# The sign of the lower half says nothing of the upper.
.func f (any, any)
        test    %edi, %edi
        js      out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
