# expect: no instruction, function or stub
# Nothing is behind the last function.
.func f (any)
        test    %edi, %edi
        je      end
        .return
end:    .p2align 0
