# expect: expected \d+ bytes of data, found
# A call leaves nothing in r11.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        mov     %rdi, %r11
        call    g
        mov     %r11, 0x10000000
out:    .return
.func g ()
        .return
