# expect: flags
# One path knows the carry, the other the zero flag: of both together nothing is known.
.func f (any, any) -> any
        test    %rsi, %rsi
        jne     other
        cmp     $0, %rsp
        bt      $3, %rdi
        jmp     both
other:  cmp     $0, %rsp
        bsf     %rdi, %rdx
both:   jb      out
        mov     $1, %eax
        .return
out:    mov     $0, %eax
        .return
