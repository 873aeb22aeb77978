# A kernel function returns 0 at once: every user is root to programs that ask.
attack="patch-text"
is_back() { [ "$(target whoami)" = 1234 ]; }
