#!/bin/sh
# backends.sh: prints the backends that this machine has.
[ ! -w /dev/kvm ] || echo kvm
echo process
