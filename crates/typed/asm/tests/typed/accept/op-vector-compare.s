# Comparisons into the flags.
.func f (any, any)
        comiss  %xmm0, %xmm1
        ja      out
        ucomisd 0x10000000, %xmm1
        jp      out
        ptest   %xmm0, %xmm1
        je      out
        nop
out:    nop
        .return
