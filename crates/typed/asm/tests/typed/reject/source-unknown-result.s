# expect: :3: .*result
# A result is a number, or there is none.
.func f (any) -> unknown
        .return
