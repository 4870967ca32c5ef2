# One process of a tree under test: it says that it is up, and stays. It is deaf to all that can be
# ignored (exec keeps what is ignored), unless it is to be willing; and stopped, if it is to be that.
[ "$1" = willing ] || trap "" HUP TERM INT QUIT
echo up >&2
[ "$1" = stopped ] && kill -STOP $$
exec sleep 1000
