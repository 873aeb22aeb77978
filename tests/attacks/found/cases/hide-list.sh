# A process is missing from the process list.
attack="hide-list $process"
is_back() { target listed 1234; }
