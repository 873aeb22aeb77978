# The only probe, to which a static call leads.
attack="hook-tracepoint sched_process_fork"
does="uname"
hook="tracepoint probe at .*: tracepoint sched_process_fork"
