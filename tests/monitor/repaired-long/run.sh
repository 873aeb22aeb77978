# run.sh KERNEL ISOLATION CASE SECONDS: in a guest, tampers once as that case of attacks/found does, waits for the
# repair, and makes an ordinary change every few seconds for SECONDS. Time is the emulator's, and the monitor has its
# defaults. Prints that time, or what went wrong.
. ../quiet/guest.sh
module=$(kyozon-lab module --kernel "$1" "$TREE/linux/attacks") || exit 1
cc -static -pthread -O1 -Wall -o "$SCRATCH/target" ../../attacks/module/target.c || exit 1
guest "$1" "$2" $((3 * $4 + 900)) $(clock) --put "$SCRATCH/target:/bin/target" \
	--put "$module:/m/kyozon-attacks.ko" --put "../../attacks/found/cases/$3.sh:/case.sh" \
	--put "../../colocation/lib.sh:/lib.sh" --put "after.sh:/after.sh" "PAUSE=5 sh /after.sh $4"
