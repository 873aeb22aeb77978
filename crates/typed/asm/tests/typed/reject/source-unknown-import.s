# expect: :3: .*import
# An import's code may use what it gets.
.import log 7 (any, unknown)
.func f (any)
        .return
