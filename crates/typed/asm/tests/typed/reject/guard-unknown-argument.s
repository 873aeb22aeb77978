# expect: expected flags that stem from data
# A branch on what is passed as unknown would tell of it.
.func f (any, unknown)
        test    %rsi, %rsi
        jne     out
out:    .return
