# expect: expected flags that stem from data
# The flags at the entry are the caller's.
.func f (any)
        je      out
        nop
out:    .return
