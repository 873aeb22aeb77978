# expect: made for a region at
# The upper half of the region's address counts.
# patch: 20 01
.func f (any)
        .return
