# A listed module gets all keys in the place of the keyboard's handler.
attack="hook-input"
found="operations changed: input handler kbd // leads to module kyozon_attacks"
