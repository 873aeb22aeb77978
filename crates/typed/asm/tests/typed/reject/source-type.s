# expect: type `i32`
# Types have no sign.
.func f (i32)
        .return
