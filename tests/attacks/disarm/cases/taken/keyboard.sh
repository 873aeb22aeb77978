# Nobody types here.
attack="hook-keyboard"
does=""
hook="notifier at .*: keyboard_notifier_list"
