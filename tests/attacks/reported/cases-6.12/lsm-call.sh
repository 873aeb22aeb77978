# The record of a security module's hook leads to a function that allows everything: no process lacks a capability once
# Linux writes its calls anew. Linux 6.1 has no such records.
attack() { echo "redirect-call lsm_static_call_capable __static_call_return0 cap_capable" >/proc/kyozon-attacks; }
found="protection lifted: __SCK__lsm_static_call_capable_[0-9]* .*expected cap_capable, found __static_call_return0"
