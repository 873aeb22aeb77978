# expect: Jump.*: too many jumps and heads with so deep a frame for so little text
# Each entry of the jump table joins a frame of 16 KiB at its target.
.func f (any) frame 16384
        cmp     $0xa000, %sp
        jb      out
        sub     $16384, %rsp
        and     $7, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        ucomiss %xmm0, %xmm0
        .rept   64
        je      1f
        jmp     __x86_indirect_thunk_rax
1:
        .endr
end:    add     $16384, %rsp
out:    .return
.jumptable jt: end, end, end, end, end, end, end, end
