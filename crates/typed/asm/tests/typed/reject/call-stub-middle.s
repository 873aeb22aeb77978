# expect: no instruction, function or stub
# A stub has one entry.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        call    __x86_indirect_thunk_rax+4
out:    nop
        .return
