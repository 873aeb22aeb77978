# A jump label is switched, and its key is not. Which of them is wrong is not known.
attack="patch-label" held="kernel text changed: .*perhaps the key or the record"
is_back() { false; }
