# expect: argument rdi: expected u32
# The call before it left nothing in rdi.
.func f (u32)
        cmp     $0x6000, %sp
        jb      out
        call    g
        call    g
out:    .return
.func g (u32)
        .return
