# Another kernel takes over, in order: the cokernel is gone. Where there is a wall, it is opened, and that is told. This
# case does not return.
attempt() { again; }
