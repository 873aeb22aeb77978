# A listed module has a function behind a directory listing call it, without Linux's code in between.
attack="hook-direct proc_pid_readdir"
found="sensitive function hooked: proc_pid_readdir // leads to module kyozon_attacks"
