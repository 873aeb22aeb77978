# Nothing flows into a head that knows a view, its length and a place in it.
.import packet 0x8000 (any) -> view
.func f (any)
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        xor     %ecx, %ecx
        jmp     test
.head rax: view of get at 0, rdx: length of get, rcx: index of get from 0 room 1, r8: view of get from 0 room 1
more:   movzbl  (%r8), %edi
        movzbl  (%rax,%rcx), %edi
        inc     %rcx
test:   cmp     %rdx, %rcx
        jae     out
        lea     (%rax,%rcx), %r8
        jmp     more
out:    .return
