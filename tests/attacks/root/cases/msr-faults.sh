# EFER gets a reserved bit, and one that few processors have (LMSLE), with which Linux could not be entered any more; a
# register that no processor has is read and written. A processor refuses each; QEMU 7.2 ignores the bits and the
# register.
control=survived wall=refused
attempt() { root msr efer-reserved || root msr efer-lmsle || root msr unknown; }
works() { answer | grep -q changes; }
