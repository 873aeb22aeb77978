# Another kernel takes over, in order: the cokernel is gone, and nothing says so. This case does not return.
attempt() { again; }
