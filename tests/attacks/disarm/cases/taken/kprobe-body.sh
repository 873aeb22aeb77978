# By a breakpoint, or a jump in its place.
case $(uname -r) in 6.1.*) body=0x5;; *) body=0x9;; esac
attack="hook-kprobe __x64_sys_newuname+$body"
does="uname"
hook="kprobe handler at .*: __x64_sys_newuname"
