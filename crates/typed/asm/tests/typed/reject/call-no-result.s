# expect: expected \d+ bytes of data, found
# A function without a result leaves nothing in rax.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    g
        mov     %rax, 0x10000000
out:    .return
.func g ()
        .return
