# expect: write of 8 bytes.*unknown
# Only constant places of the frame have names.
.func f (any, any) frame 64
        sub     $64, %rsp
        and     $7, %edi
        mov     %rsi, (%rsp,%rdi,8)
        add     $64, %rsp
        .return
