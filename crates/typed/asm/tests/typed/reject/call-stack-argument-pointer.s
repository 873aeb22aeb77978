# expect: stack argument 1: expected 8 bytes of data
# An address is no argument.
.func f () frame 16
        push    %rsp
        push    $0
        cmp     $0x6000, %sp
        jb      less
        call    g
less:   add     $16, %rsp
        .return
.func g (; stack 2)
        .return
