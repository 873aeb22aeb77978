# Its entry says that its second argument is a byte, from which it makes an address. The microkernel passed one argument;
# the other one is what the program itself left in the register when it returned from its start.
.region 0x40000000
.import report 0 (any, any) -> any
.func main (u32, u8) frame 8
        test    %edi, %edi
        js      start
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
        mov     0x40000000(%rsi), %rax
        mov     %rax, 0x40000000
        xor     %edi, %edi
        mov     $8, %esi
        call    report
out:    add     $8, %rsp
        .return
# The microkernel's image
start:  mov     $0x20000000 - 0x40000000, %rsi
        .return

.section .rest
rest:   .ascii  "KYZWASM1"
        .long   end - rest, 0, 1, 0, 1, 1
        .quad   0
        .long   1, 1
        .long   module - rest, 4, name - rest, 6, type - rest, 4
        .long   0, 0, run - rest, 3, colon - rest, 1
module: .ascii  "task"
name:   .ascii  "report"
type:   .ascii  "ii:I"
run:    .ascii  "run"
colon:  .ascii  ":"
end:
