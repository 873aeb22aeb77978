# A handler of ftrace in a module that no list has: Linux would warn if its call were taken out.
attack="hide-handler" held="hidden ftrace handler: .*the monitor unregisters nothing"
text="hidden ftrace handler: .*; leads to 0x[0-9a-f]* in no listed module"
is_back() { false; }
