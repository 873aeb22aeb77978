# expect: made for a region at 0x20000000
# The region is elsewhere.
# patch: 19 20
.func f (any)
        .return
