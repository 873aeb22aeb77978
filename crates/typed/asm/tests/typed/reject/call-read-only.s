# expect: no instruction, function or stub
# Read-only data is no code.
.func f ()
        cmp     $0x6000, %sp
        jb      out
        call    data
out:    .return
.section .rodata
data:   .byte   0xc3
