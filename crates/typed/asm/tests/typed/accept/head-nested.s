# Two loops, one in the other.
.func f (u32, u32)
.head rdi: u32, rcx: unknown
outer:  mov     %esi, %ecx
.head rcx: u32
inner:  movb    $0, 0x10000000(%rdi,%rcx)
        dec     %ecx
        jne     inner
        dec     %edi
        jne     outer
        .return
