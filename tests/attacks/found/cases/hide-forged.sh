# A process is missing from the process list, and its members say that it is no task.
attack="hide-forged $process"
is_back() { target listed 1234; }
