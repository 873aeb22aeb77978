# EFER gets a reserved bit, with which Linux could not be entered any more; a register that no processor has is read and
# written. A processor refuses each; QEMU 7.2 ignores the bit and the register.
control=survived wall=refused
attempt() { root msr efer-reserved || root msr unknown; }
works() { answer | grep -q changes; }
