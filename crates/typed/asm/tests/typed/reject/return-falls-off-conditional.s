# expect: goes on behind its end
# The condition may not hold.
.func f (any, any)
top:    test    %edi, %edi
        je      __x86_return_thunk
