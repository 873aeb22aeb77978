# expect: expected an entry of a call or jump table
# A pointer in the region is a number.
.indirect
.func f ()
        cmp     $0x6000, %sp
        jb      out
        call    *0x10000000
out:    .return
