# A head into which nothing flows, in a frame that needs a check: the block before it has none of both.
.func f (any) frame 4104
        cmp     $0x6000, %sp
        jb      out
        sub     $4104, %rsp
        mov     %edi, %edi
        jmp     test
out:    .return
.head rsp: stack-4104, rdi: u32, checked: stack-4352
again:  movb    $0, 0x10000000(%rdi)
test:   dec     %edi
        jne     again
        add     $4104, %rsp
        .return
