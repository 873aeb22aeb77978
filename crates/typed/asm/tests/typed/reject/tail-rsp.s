# expect: rsp: expected
# A tail call leaves by the caller's return address.
.func f () frame 8
        push    $0
        jmp     g
.func g ()
        .return
