#!/bin/sh
echo "cannot find my configuration" >&2
exit 3
