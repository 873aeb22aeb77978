# expect: argument rdi: expected u32, found any
# An import's arguments are checked too.
.import log 1 (u32)
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    log
out:    .return
