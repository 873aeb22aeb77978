# expect: stack argument 0: expected 8 bytes of data
# The argument would be the return address.
.func f ()
        cmp     $0x6000, %sp
        jb      out
        call    g
out:    .return
.func g (; stack 1)
        .return
