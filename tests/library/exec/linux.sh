#!/bin/sh
# linux.sh ARGUMENTS: kyozon exec with the program and the image of this build.
exec "$KYOZON_PRODUCT/kyozon" exec "$@"
