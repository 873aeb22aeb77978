# expect: r15: expected its value at entry
# Not even its lowest byte may change.
.func f (any, any)
        mov     %dil, %r15b
        .return
