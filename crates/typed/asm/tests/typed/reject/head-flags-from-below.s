# expect: head 0x6: expected flags that stem from data
# The jump back brings flags of an address.
.func f (any) -> any
        cmp     $10, %rdi
        jb      other
.head flags, rdi: any, rdx: unknown
same:   setae   %al
        movzbl  %al, %eax
        .return
other:  mov     %rsp, %rdx
        add     $8, %rdx
        jmp     same
