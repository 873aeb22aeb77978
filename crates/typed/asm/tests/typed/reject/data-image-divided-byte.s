# expect: expected \d+ bytes of data, found
# The dividend of one byte is ax.
.func f (any, any)
        lea     f(%rip), %rax
        div     %dil
        .return
