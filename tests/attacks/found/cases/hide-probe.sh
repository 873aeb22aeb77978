# A tracepoint's static call leads into a module that no list has. The old call would lead to the same probe.
attack="hide-probe" held="kernel text changed: .*the probe is still registered"
text="kernel text changed: .*leads to 0x[0-9a-f]* in no listed module"
is_back() { false; }
