# expect: middle of an instruction
# The jump leads into an instruction.
.func f (any, any)
        test    %edi, %edi
        je      inside+1
inside: mov     $0xc3c3c3c3, %eax
        .return
