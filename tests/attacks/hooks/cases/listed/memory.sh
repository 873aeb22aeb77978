# Code in executable memory of the direct map.
attack="exec-memory page"
found="hidden executable memory:"
