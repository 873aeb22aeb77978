# Code that can be changed while it runs.
attack="writable-exec-memory"
found="writable executable memory:"
