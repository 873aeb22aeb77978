# The listing of directories: a sensitive function.
attack="filter-process 77777"
does="ls /proc"
hook="kprobe handler at .*: filldir64"
