# expect: expected flags that stem from data
# The flags at a head are those of any way.
.func f (any, any)
        test    %edi, %edi
.head rdi: any
again:  je      out
        dec     %edi
        jmp     again
out:    nop
        .return
