# expect: expected flags that stem from data
# A call changes the register in which the length is given.
.import packet 0x8000 () -> view
.import log 1 ()
.func f () frame 8
        push    %rbx
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rax, %rbx
        call    log
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
        movzbl  (%rbx,%rcx), %ecx
out:    pop     %rbx
        .return
