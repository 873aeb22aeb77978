attack="hook-packet"
hook="packet handler at .*: no safe step"
