# expect: jump back to .* which has no annotation
# The jump leads back into an instruction.
.func f (any, any)
inside: mov     $0xc3c3c3c3, %eax
        test    %edi, %edi
        je      inside+1
        .return
