# A process is in no walk over all processes.
attack="hide-list $process"
is_back() { target listed 1234; }
