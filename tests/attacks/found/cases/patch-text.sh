# A kernel function returns 0 at once: every user is root to programs that ask.
attack="patch-text"
text="kernel text changed: .*_sys_getuid at 0x[0-9a-f]*: expected .*, found 31 c0 c3"
is_back() { [ "$(target whoami)" = 1234 ]; }
