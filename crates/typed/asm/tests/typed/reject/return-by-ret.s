# expect: expected a thunk
# The file says that it returns by the thunk.
.func f (any, any)
        ret
