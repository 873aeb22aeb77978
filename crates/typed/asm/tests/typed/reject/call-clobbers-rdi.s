# expect: expected \d+ bytes of data, found
# A call leaves nothing in rdi.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    g
        mov     %rdi, 0x10000000
out:    .return
.func g ()
        .return
