# A security module's hook is another function: the one that any kernel has, which refuses less.
case $(uname -r) in 6.1.*) word=3 ;; *) word=1 ;; esac
attack="patch-rodata apparmor_hooks $word cap_ptrace_access_check"
text="read-only data changed: apparmor_hooks+.*, found .*(cap_ptrace_access_check)"
is_back() { grep -q gone /proc/kyozon-attacks; }
