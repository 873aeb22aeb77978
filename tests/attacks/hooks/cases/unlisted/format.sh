# A binary format is asked about every program.
attack="hook-format"
found="hidden binary format:"
