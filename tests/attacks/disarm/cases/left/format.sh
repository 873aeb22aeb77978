attack="hook-format"
hook="binary format at .*: no safe step"
