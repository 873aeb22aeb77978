# expect: expected 2 bytes of data, found
# The same with shrd, and a count in cl that may be 17.
.func f (any, any)
        mov     %esi, %ecx
        and     $17, %ecx
        shrd    %cl, %di, %si
        mov     %si, 0x10000000
        .return
