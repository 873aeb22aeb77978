# expect: r13: expected its value at entry
# An import restores nothing either.
.import exit 1 ()
.func f (any)
        mov     %rdi, %r13
        jmp     exit
