#!/bin/sh
# kv.sh MACHINE: the key-value store in virtual machines (kvm), processes (process) or as host threads (threads). A
# client sends files, several at the same time, and the answers are compared.
set -eu
machine=$1
cd "$SCRATCH"

# Formats each input line as a command: an array of words, or a line.
words() { awk '{ printf "*%d\r\n", NF; for (i = 1; i <= NF; i++) printf "$%d\r\n%s\r\n", length($i), $i }'; }
lines() { awk '{ printf "%s\r\n", $0 }'; }

# Three clients set and get at the same time, in pieces as TCP makes them; a fourth sends each command as a line.
for client in a b c d; do
	form=words
	[ $client = d ] && form=lines
	seq 2000 | awk -v c=$client '
		{ k = c $1 % 50; print "SET " k " " c $1; print "GET " k; if ($1 % 100 == 0) print "PING" }
	' | $form >$client
	seq 2000 | awk -v c=$client '
		{ print "+OK"; v = c $1; print "$" length(v); print v; if ($1 % 100 == 0) print "+PONG" }
	' | lines >$client.wanted
done
# Four clients increment the same key.
for client in e f g h; do
	seq 1000 | sed 's/.*/INCR n/' | words >$client
done
printf 'GET n\r\nDBSIZE\r\n' >i
printf '$4\r\n4000\r\n:201\r\n' >i.wanted
# Values that together exceed a ring, and a connection's buffers.
long=$(head -c 60000 /dev/zero | tr '\0' x)
{ echo "SET long $long"; seq 40 | sed 's/.*/GET long/'; echo DEL long; } | words >j
{ echo +OK; seq 40 | while read -r _; do echo '$60000'; echo "$long"; done; echo :1; } | lines >j.wanted
# Invalid commands; words that are too long or too many; noise. Other clients are not affected.
printf 'PING\r\n*2\r\n$4\r\nECHO\r\n+1\r\nPING\r\n' >k
printf "+PONG\r\n-ERR Protocol error: expected '\$', got '+'\r\n" >k.wanted
printf '*1\r\n$999999999\r\n' >l
printf -- '-ERR Protocol error: invalid bulk length\r\n' >l.wanted
printf '*1025\r\n' >m
printf -- '-ERR Protocol error: invalid multibulk length\r\n' >m.wanted
head -c 200000 /dev/zero | tr '\0' y >n
printf -- '-ERR Protocol error: a command has at most 65536 bytes\r\n' >n.wanted
head -c 100000 /dev/urandom >o
printf 'EXISTS a1 a2 nothing\r\nNO such\r\nGET\r\nQUIT\r\nPING\r\n' >p
printf ":2\r\n-ERR unknown command 'NO'\r\n-ERR wrong number of arguments\r\n+OK\r\n" >p.wanted
# Values beyond the table's limit are refused, and existing ones stay.
{ seq 300 | awk -v v="$long" '{ print "SET big" $1 " " v }'; echo GET a1; echo FLUSHALL; echo DBSIZE; } | words >q
printf '$5\r\na1951\r\n+OK\r\n:0\r\n' >q.end
# A worker dies while it executes a client's batch. That client and later ones get another worker.
printf 'SET a 1\r\nDEBUG PANIC\r\n' >r
printf -- '-ERR the worker that had this command died\r\n-ERR the worker that had this command died\r\n' >r.wanted
printf 'PING\r\n' >s
printf '+PONG\r\n' >s.wanted
printf 'SHUTDOWN\r\n' >z
: >z.wanted

status=1 died='r s'
kyozon-lab talk --socket lan 10.0.0.2 6379 \
	a,b,c,d e,f,g,h i j,a k,l,m,n,o,s p q $([ "$machine" = threads ] || echo r s) z & client=$!
for _ in $(seq 100); do test -S lan && break; sleep 0.1; done
if [ "$machine" = threads ]; then
	# As host threads, a panic ends the whole program.
	status=0 died=
	"$KYOZON_PRODUCT/kv-threads" socket=lan 10.0.0.2/24 6379 3 debug || code=$?
else
	kyozon run --backend "$machine" --time-limit 100 --net name=lan,socket=lan "$KYOZON_PRODUCT/kv.elf" -- \
		10.0.0.2/24 6379 3 debug || code=$?
fi
wait $client
[ "${code:-0}" = $status ] || echo "expected status $status, found ${code:-0}"
for name in a b c d i j k l m n p $died z; do
	cmp "$name.out" "$name.wanted" || head -c 200 "$name.out"
done
grep -c '^-OOM' q.out
tail -c "$(wc -c <q.end)" q.out | cmp - q.end
echo "$machine: done"
