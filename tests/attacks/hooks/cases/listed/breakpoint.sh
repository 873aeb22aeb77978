# A breakpoint of the processor, set by Linux's own means: no code changes.
attack="hook-breakpoint tcp6_seq_show"
found="sensitive function hooked: tcp6_seq_show // leads to module kyozon_attacks"
