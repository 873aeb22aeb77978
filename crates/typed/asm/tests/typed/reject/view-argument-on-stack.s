# expect: stack argument 0: expected 8 bytes of data, found view
# A view is no argument.
.import packet 0x8000 (any) -> view
.func f (any) frame 8
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rax, (%rsp)
        call    g
out:    add     $8, %rsp
        .return
.func g (; stack 1)
        .return
