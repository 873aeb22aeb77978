# Code in memory of no owner, as a loader of position-independent code leaves it.
attack="exec-memory"
found="hidden executable memory:"
