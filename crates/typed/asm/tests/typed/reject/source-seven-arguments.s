# expect: more than 6 arguments
# Six arguments are in registers.
.func f (any, any, any, any, any, any, any)
        .return
