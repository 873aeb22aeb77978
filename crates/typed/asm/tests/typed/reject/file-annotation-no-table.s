# expect: malformed annotation|no call table|head
# A head names a jump table that does not exist.
# patch: 104 09
.func f (any)
        lea     f(%rip), %rcx
        jmp     out
.head rax: distance of jt
again:  add     %rax, %rcx
out:    .return
one:    ud2
.jumptable jt: one
