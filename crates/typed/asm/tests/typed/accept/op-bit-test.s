# bt of registers, and of memory with an immediate.
.func f (any, any)
        bt      %rsi, %rdi
        jc      out
        bt      %esi, %edi
        bt      %si, %di
        bt      $3, %rdi
        bt      $3, %edi
        btq     $63, 0x10000000
        btl     $3, 0x10000000
        btw     $3, 0x10000000
        setc    0x10000000
out:    nop
        .return
