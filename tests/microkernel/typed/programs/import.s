# A call that typed tasks do not have: to send a message.
.region 0x40000000
.import call 1 (any) -> any
.func main ()
        .return
