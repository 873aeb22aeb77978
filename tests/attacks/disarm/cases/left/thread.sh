attack="hook-thread"
hook="kernel thread at .*: thread kworker/u9:7: no safe step"
