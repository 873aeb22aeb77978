# expect: expected flags that stem from data
# The flags are undefined as well.
.func f (any, any)
        shld    $17, %di, %si
        jc      out
out:    .return
