# Macros, symbols and numeric labels of the GNU assembler.
region = 0x10000000
.macro store value, offset
        movl    $\value, region + \offset
.endm
.func f (u32)
        store   1, 0
        store   2, 4 # a comment
        test    %edi, %edi ; jne 1f /* one
and a half */
        .rept   3
        nop
        .endr
1:      .return
