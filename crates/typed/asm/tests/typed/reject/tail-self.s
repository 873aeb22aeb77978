# expect: argument rdi: expected u32
# A jump to the own entry is a tail call.
.func f (u32)
        mov     0x10000000, %rdi
        test    %edi, %edi
        je      f
        .return
