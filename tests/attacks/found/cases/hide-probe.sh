# A tracepoint's static call leads into a module that no list has. The old call would lead to the same probe.
attack="hide-probe" held="kernel text changed: .*the probe is still registered"
is_back() { false; }
