# expect: read of 1 bytes.*found unknown
# A call changes the registers in which a view is given.
.import packet 0x8000 () -> view
.import log 1 ()
.func f ()
        cmp     $0x5000, %sp
        jb      out
        call    packet
        call    log
        movzbl  (%rax), %ecx
out:    .return
