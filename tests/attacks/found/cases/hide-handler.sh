# A handler of ftrace in a module that no list has: Linux would warn if its call were taken out.
attack="hide-handler" held="hidden ftrace handler: .*the monitor unregisters nothing"
is_back() { false; }
