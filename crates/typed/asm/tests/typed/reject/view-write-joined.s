# expect: write of 1 bytes.*found view of
# A place of a writable view, and one of the same that a head takes for one to read.
.import packet 0xc000 () -> writable_view
.func f ()
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
        add     %rcx, %rax
.head rax: view of get from 4 room 1
again:  movb    $1, (%rax)
        jmp     again
out:    .return
