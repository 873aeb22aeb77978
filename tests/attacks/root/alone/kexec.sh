# Another kernel takes over by kexec: the cokernel is gone. If there is a wall, it is opened, and the opening is
# reported. This case does not return.
attempt() { again; }
