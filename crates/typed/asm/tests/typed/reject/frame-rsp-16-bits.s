# expect: rsp: expected
# A write of 16 bits changes the stack pointer.
.func f (any, any) frame 8
        sub     $8, %sp
        .return
