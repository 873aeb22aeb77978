# expect: goes on behind its end
# A call comes back.
.func f ()
        cmp     $0x6000, %sp
        jb      out
        call    f
out:    nop
