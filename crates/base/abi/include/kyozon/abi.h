/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generated from crates/base/abi; BLESS=1 cargo test -p kyozon-abi --test header writes it again. */

#ifndef KYOZON_ABI_H
#define KYOZON_ABI_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/*
 Version of this interface.
 */
#define KYOZON_LAYER_VERSION 10

/*
 Virtual address at which the layer is linked: below 2 GiB, where Linux keeps no global translations.
 */
#define KYOZON_LAYER_BASE 268435456

/*
 Virtual address at which the cokernel is linked.
 */
#define KYOZON_COKERNEL_BASE 536870912

/*
 Virtual address of the task images. They are mapped read-only, one after the other, each from a page boundary on.
 */
#define KYOZON_TASKS_BASE 805306368

/*
 From this virtual address up to [`MEMORY_BASE`], the layer maps nothing: a cokernel may map its own there.
 */
#define KYOZON_FREE_BASE 1073741824

/*
 Virtual address of the cokernel's own memory. It is contiguous there, even if the reserve consists of several
 physical pieces.
 */
#define KYOZON_MEMORY_BASE 68719476736

/*
 Linux's physical address `p` can be read at `WINDOW_BASE + p` if `p` lies in System RAM.

 The window's level-4 entries forbid access from user mode, the tables below them allow it: a cokernel that wants a
 task to read Linux's memory copies the level-4 entries and sets the user bit in its copies.
 */
#define KYOZON_WINDOW_BASE 70368744177664

/*
 [`BootBlock::mode`]: the cokernel runs alone, without Linux.
 */
#define KYOZON_MODE_ALONE 0

/*
 [`BootBlock::mode`]: beside Linux, without isolation.
 */
#define KYOZON_MODE_NONE 1

/*
 [`BootBlock::mode`]: beside Linux, isolated by nested paging.
 */
#define KYOZON_MODE_VMM 2

/*
 Maximum number of pieces in a reserve, and of ranges in a list of RAM ranges.
 */
#define KYOZON_MAX_RANGES 64

/*
 Maximum number of tasks of a cokernel.
 */
#define KYOZON_MAX_TASKS 6

/*
 [`ImageHeader::magic`]: "KYOZON" and two bytes that no text file contains.
 */
#define KYOZON_IMAGE_MAGIC 1873583547710658891

/*
 [`ImageHeader::kind`]: the layer.
 */
#define KYOZON_IMAGE_LAYER 1

/*
 [`ImageHeader::kind`]: a cokernel.
 */
#define KYOZON_IMAGE_COKERNEL 2

/*
 [`ImageHeader::kind`]: a user task of the cokernel: an ELF file of `data_bytes` bytes after one page of header.
 */
#define KYOZON_IMAGE_TASK 3

/*
 [`ImageHeader::kind`]: the hypervisor of mode vmm.
 */
#define KYOZON_IMAGE_HYPERVISOR 4

/*
 [`Trip::result`]: the cokernel is idle.
 */
#define KYOZON_TRIP_IDLE 0

/*
 [`Trip::result`]: the budget is spent. The layer cut the cokernel off; it continues at the next tick.
 */
#define KYOZON_TRIP_CUT_OFF 1

/*
 [`Trip::result`]: the cokernel is stopped for good; [`Trip::fault`] says why.
 */
#define KYOZON_TRIP_STOPPED 2

/*
 [`Trip::result`]: the layer asks the module to park the other CPUs and to enter it again at once.
 */
#define KYOZON_TRIP_PARK 3

/*
 [`Trip::result`]: a machine check arrived, which Linux must handle.
 */
#define KYOZON_TRIP_MACHINE_CHECK 4

/*
 [`Trip::result`]: the layer asks Linux to start its crash kernel. If there is none, the trip continues at the next
 tick.
 */
#define KYOZON_TRIP_CRASH 5

/*
 [`Trip::slack_tsc`]: the constant part, in microseconds.
 */
#define KYOZON_SLACK_US 2

/*
 [`Trip::slack_tsc`]: the part of a period. Linux's calibration of the time-stamp counter is good to 500 ppm; a
 larger slack would take Linux's NMIs for the guard's when budgets are short.
 */
#define KYOZON_SLACK_DIVISOR 1024

/*
 [`Trip::parked`]: the other CPUs run, or may continue.
 */
#define KYOZON_PARKED_FREE 0

/*
 [`Trip::parked`]: the other CPUs are parked, until the state becomes [`PARKED_FREE`]. A parked CPU that has waited
 too long sets that state itself.
 */
#define KYOZON_PARKED_STANDING 1

/*
 [`Trip::parked`]: the layer exchanged [`PARKED_STANDING`] for this and is writing; the other CPUs stay parked.
 */
#define KYOZON_PARKED_WRITING 2

/*
 [`Trip::parked`]: mask of the state's bits.
 */
#define KYOZON_PARKED_STATE 3

/*
 [`Fault::reason`]: an exception that the cokernel did not handle; `frame.vector` holds its number.
 */
#define KYOZON_FAULT_EXCEPTION 1

/*
 [`Fault::reason`]: the cokernel ran away: it was cut off too many times in a row without becoming idle.
 */
#define KYOZON_FAULT_RUNAWAY 2

/*
 [`Fault::reason`]: the cokernel returned from its `start`.
 */
#define KYOZON_FAULT_RETURNED 3

/*
 [`Fault::reason`]: the layer itself failed.
 */
#define KYOZON_FAULT_LAYER 5

/*
 [`Fault::reason`], mode vmm: the cokernel accessed memory that is not its own, or its CPU shut down. `frame.vector`
 is the hypervisor's exit code, `frame.error` and `cr2` are the exit's information.
 */
#define KYOZON_FAULT_WALL 6

/*
 [`Fault::reason`], mode vmm: an exit stored the hypervisor's state in place of the cokernel's, which is lost. No
 processor does this; an emulator may.
 */
#define KYOZON_FAULT_PROCESSOR 7

/*
 [`Fault::reason`], mode vmm: a call from Linux stopped the ticks. A call can start them again.
 */
#define KYOZON_FAULT_CALL 8

/*
 [`Fault::reason`], mode vmm: the hypervisor can no longer enter Linux on the cokernel's CPU. `frame.vector` is the
 exit code.
 */
#define KYOZON_FAULT_LOST_CPU 9

/*
 [`Trip::look`]: nobody wants to look.
 */
#define KYOZON_LOOK_NONE 0

/*
 [`Trip::look`]: the module asks the next CPU at a trip's end, once it is time for that.
 */
#define KYOZON_LOOK_WANTED 1

/*
 [`Trip::look`]: a CPU was asked.
 */
#define KYOZON_LOOK_ASKED 2

/*
 [`Trip::look`]: it stores its registers.
 */
#define KYOZON_LOOK_STORING 3

/*
 [`Trip::look`]: it has stored them.
 */
#define KYOZON_LOOK_SHOWN 4

/*
 Bits of [`Trip::look`] that hold the state.
 */
#define KYOZON_LOOK_STATE 7

/*
 Bits of [`Trip::look`] below the CPU's number.
 */
#define KYOZON_LOOK_CPU_SHIFT 3

/*
 [`UserState::switched`]: the CPU holds the cokernel's user state.
 */
#define KYOZON_USER_SWITCHED 1

/*
 [`UserState::switched`]: the trip ended in an interrupt gate, which may have changed SS.
 */
#define KYOZON_USER_GATE 2

/*
 [`BootBlock::work`]: a tick waits.
 */
#define KYOZON_WORK_TICK 1

/*
 Code selector of kernel mode.
 */
#define KYOZON_KERNEL_CODE_SELECTOR 16

/*
 Code selector of user mode.
 */
#define KYOZON_USER_CODE_SELECTOR 51

/*
 Stack and data selector of user mode.
 */
#define KYOZON_USER_DATA_SELECTOR 43

/*
 Maximum bytes of text in a [`Report`].
 */
#define KYOZON_REPORT_BYTES 256

/*
 Maximum number of words in one repair transaction.
 */
#define KYOZON_MAX_REPAIR_WORDS 16

/*
 Words around a change that a [`Write`] has.
 */
#define KYOZON_WRITE_WORDS 4

/*
 Maximum number of writes that one call fetches.
 */
#define KYOZON_MAX_WRITES 16

/*
 [`Write::kind`]: memory in a watched range.
 */
#define KYOZON_WRITE_MEMORY 0

/*
 [`Write::kind`]: EFER, or a register of system calls: STAR, LSTAR, CSTAR, SFMASK, or one of SYSENTER's.
 */
#define KYOZON_WRITE_REGISTER 1

/*
 [`Write::kind`]: CR0 or CR4.
 */
#define KYOZON_WRITE_CONTROL 2

/*
 [`Write::kind`]: IDTR, GDTR or TR. The words are the base and limit.
 */
#define KYOZON_WRITE_TABLE 3

/*
 [`Write::address`] of a table register: IDTR.
 */
#define KYOZON_TABLE_INTERRUPTS 0

/*
 The same: GDTR.
 */
#define KYOZON_TABLE_DESCRIPTORS 1

/*
 The same: TR.
 */
#define KYOZON_TABLE_TASK 2

/*
 All words were written.
 */
#define KYOZON_REPAIR_DONE 0

/*
 A word did not hold its expected value. Nothing was written.
 */
#define KYOZON_REPAIR_CHANGED -1

/*
 The request is malformed: its count, an alignment, a repeated address or one outside System RAM. Nothing was
 written.
 */
#define KYOZON_REPAIR_INVALID -2

/*
 The other CPUs could not be parked in time. Nothing was written.
 */
#define KYOZON_REPAIR_BUSY -3

/*
 An argument of a service is an address outside the cokernel's memory, or a number out of range.
 */
#define KYOZON_SERVICE_BAD_ADDRESS -4

/*
 The service does not exist in this mode: no Linux runs beside a cokernel that runs alone. Or no other CPU has shown
 its registers yet.
 */
#define KYOZON_SERVICE_UNAVAILABLE -5

/*
 Version of this interface.
 */
#define KYOZON_DEVICE_VERSION 3

/*
 Maximum number of images in one load: the layer, the cokernel and its tasks.
 */
#define KYOZON_MAX_IMAGES 8

/*
 Bytes of the line that explains why a request failed, including the closing zero.
 */
#define KYOZON_MESSAGE_BYTES 256

/*
 `ioctl` request: [`Load`], `_IOWR('K', 1, struct kyozon_load)`.
 */
#define KYOZON_IOCTL_LOAD 3253226241

/*
 `ioctl` request: [`Unload`], `_IOW('K', 2, struct kyozon_unload)`.
 */
#define KYOZON_IOCTL_UNLOAD 1075333890

/*
 `ioctl` request: [`Status`], `_IOR('K', 3, struct kyozon_status)`.
 */
#define KYOZON_IOCTL_STATUS 2178960131

/*
 [`Load::tick_source`]: the module probes the sources below in the order of their numbers.
 */
#define KYOZON_TICK_AUTO 0

/*
 [`Load::tick_source`]: HPET timer 2, delivered by message (MSI).
 */
#define KYOZON_TICK_HPET_MSI 1

/*
 [`Load::tick_source`]: HPET timer 2, delivered through an IO-APIC pin that the timer advertises.
 */
#define KYOZON_TICK_HPET_IOAPIC 2

/*
 [`Load::tick_source`]: the real-time clock's periodic interrupt.
 */
#define KYOZON_TICK_RTC 3

/*
 [`Load::flags`]: load even if this kernel is outside the tested range.
 */
#define KYOZON_LOAD_UNTESTED_KERNEL 1

/*
 [`Load::flags`]: load even if this machine is not one of the emulators that the tests run on.
 */
#define KYOZON_LOAD_UNTESTED_HARDWARE 2

/*
 [`Load::flags`]: the cokernel outlives a panic of Linux that would wait for ever: no crash kernel is loaded, and
 `kernel.panic` is 0.
 */
#define KYOZON_LOAD_OUTLIVES_PANIC 4

/*
 [`Status::state`]: nothing is loaded.
 */
#define KYOZON_STATE_EMPTY 0

/*
 [`Status::state`]: the cokernel receives ticks.
 */
#define KYOZON_STATE_RUNNING 1

/*
 [`Status::state`]: the cokernel was stopped because it faulted or ran away; `message` has the reason.
 */
#define KYOZON_STATE_STOPPED 2

/*
 [`Status::iommu`]: the firmware's tables describe none: every device can access all memory.
 */
#define KYOZON_IOMMU_NONE 0

/*
 [`Status::iommu`]: the firmware's tables describe one, and Linux uses it.
 */
#define KYOZON_IOMMU_LINUX 1

/*
 [`Status::iommu`]: the hypervisor drives the described ones: no device can access the cokernel's memory.
 */
#define KYOZON_IOMMU_DRIVEN 2

/*
 [`Status::iommu`]: one is described that Linux does not use and the hypervisor cannot drive.
 */
#define KYOZON_IOMMU_UNUSED 3

/*
 Minimum bytes of a key.
 */
#define KYOZON_KEY_BYTES_MIN 16

/*
 Maximum bytes of a key.
 */
#define KYOZON_KEY_BYTES_MAX 4096

/*
 Version of this interface.
 */
#define KYOZON_EVENTS_VERSION 4

/*
 Bytes of text in one record.
 */
#define KYOZON_EVENT_TEXT_BYTES 216

/*
 [`EventRecord::kind`]: a message for the operator.
 */
#define KYOZON_EVENT_NOTE 1

/*
 [`EventRecord::kind`]: the monitor found tampering.
 */
#define KYOZON_EVENT_FINDING 2

/*
 [`EventRecord::kind`]: the monitor repaired tampering.
 */
#define KYOZON_EVENT_REPAIR 3

/*
 [`EventRecord::kind`]: the cokernel or one of its tasks was stopped.
 */
#define KYOZON_EVENT_FAULT 4

/*
 [`EventRecord::kind`]: nested paging stopped an attempt of Linux against the cokernel.
 */
#define KYOZON_EVENT_WALL 5

/*
 [`EventRecord::kind`]: the monitor restarts Linux, or says why it does not.
 */
#define KYOZON_EVENT_RESTART 6

/*
 Number of entries in [`EventRing::checks`]: as many as fit before the records.
 */
#define KYOZON_MAX_CHECKS 62

/*
 Offset of the first record from the start of the ring's memory.
 */
#define KYOZON_RECORDS_OFFSET 16384

/*
 Words of a status: of a [`CheckStatus`], and of the [`MonitorStatus`].
 */
#define KYOZON_STATUS_WORDS 32

/*
 Index of the [`MonitorStatus`] among the statuses; the checks come before it.
 */
#define KYOZON_MONITOR_INDEX KYOZON_MAX_CHECKS

/*
 [`CheckStatus::state`]: the check has published nothing about its state.
 */
#define KYOZON_CHECK_UNKNOWN 0

/*
 [`CheckStatus::state`]: the check still learns what it will compare with. It reports little, and repairs nothing.
 */
#define KYOZON_CHECK_LEARNING 1

/*
 [`CheckStatus::state`]: the check reports every change of what it watches.
 */
#define KYOZON_CHECK_WATCHING 2

/*
 [`MonitorStatus::state`]: no task has said that it watches.
 */
#define KYOZON_MONITOR_NONE 0

/*
 [`MonitorStatus::state`]: the monitor reads its profile; its checks have not begun.
 */
#define KYOZON_MONITOR_STARTING 1

/*
 [`MonitorStatus::state`]: the monitor runs its checks.
 */
#define KYOZON_MONITOR_RUNNING 2

/*
 [`MonitorStatus::state`]: the monitor has ended; [`MonitorStatus::reason`] says why.
 */
#define KYOZON_MONITOR_ENDED 3

/*
 Bytes of [`MonitorStatus::reason`].
 */
#define KYOZON_REASON_BYTES 128

/*
 Version of this interface.
 */
#define KYOZON_UNIKERNEL_VERSION 7

/*
 Maximum number of peers in a group: a set of peers is one word of 64 bits.
 */
#define KYOZON_MAX_PEERS 64

/*
 Maximum number of regions in a group.
 */
#define KYOZON_MAX_REGIONS 16

/*
 Maximum number of loadable segments of an image.
 */
#define KYOZON_MAX_SEGMENTS 16

/*
 Maximum bytes of thread-local data.
 */
#define KYOZON_MAX_TLS_BYTES (1 << 20)

/*
 Flag of a private segment, one of those that ELF leaves to operating systems (`PF_MASKOS`).
 */
#define KYOZON_SEGMENT_PRIVATE 1048576

/*
 Maximum bytes of all private segments together.
 */
#define KYOZON_MAX_PRIVATE_BYTES (16 << 20)

/*
 Minimum bytes of a spawned peer's stack, including its guard page.
 */
#define KYOZON_MIN_STACK_BYTES 8192

/*
 Type of the note, with the name `Kyozon`, that holds the version.
 */
#define KYOZON_NOTE_VERSION 1

/*
 Type of the note, with the name `Kyozon`, that holds the version of the seam between a program and its host.
 */
#define KYOZON_NOTE_SEAM 2

/*
 Version of that seam: `kyozon/seam.h`.
 */
#define KYOZON_SEAM_VERSION 1

/*
 First address of an image: 64 GiB.
 */
#define KYOZON_GUEST_IMAGE_BASE 68719476736

/*
 End of the address range for images, exclusive.
 */
#define KYOZON_GUEST_IMAGE_END 68987912192

/*
 Address to which a program is moved: 32 MiB behind the first address of an image.
 */
#define KYOZON_GUEST_PROGRAM_BASE 68753031168

/*
 The tender's pages: boot block, call block, code for hypercalls and doorbells.
 */
#define KYOZON_GUEST_SYSTEM_BASE 64424509440

/*
 Top of the stack.
 */
#define KYOZON_GUEST_STACK_TOP 103079215104

/*
 Thread-local data.
 */
#define KYOZON_GUEST_THREAD_BASE 120259084288

/*
 The heap.
 */
#define KYOZON_GUEST_HEAP_BASE 137438953472

/*
 Maximum bytes of memory of one guest.
 */
#define KYOZON_GUEST_MAX_MEMORY 68719476736

/*
 Start of the regions whose creator chooses the address.
 */
#define KYOZON_REGION_BASE 274877906944

/*
 Start of the regions whose address the tender chooses.
 */
#define KYOZON_REGION_AUTO_BASE 412316860416

/*
 End of the address range for regions, exclusive.
 */
#define KYOZON_REGION_END 481036337152

/*
 [`GuestBoot::magic`], "KYOZUNI" in memory.
 */
#define KYOZON_BOOT_MAGIC 20633801794214219

/*
 [`GuestBoot::backend`]: a virtual machine.
 */
#define KYOZON_BACKEND_KVM 1

/*
 [`GuestBoot::backend`]: a confined process.
 */
#define KYOZON_BACKEND_PROCESS 2

/*
 [`GuestBoot::features`]: the time-stamp counter is a clock, see "Time".
 */
#define KYOZON_FEATURE_TSC 1

/*
 [`GuestBoot::features`]: AVX and AVX2 with their registers.
 */
#define KYOZON_FEATURE_AVX2 2

/*
 [`GuestBoot::features`]: the instructions `rdfsbase`, `wrfsbase`, `rdgsbase` and `wrgsbase`.
 */
#define KYOZON_FEATURE_FSGSBASE 4

/*
 [`GuestBoot::features`]: [`ASK_SPAWN`](super::ASK_SPAWN) and [`ASK_END`](super::ASK_END).
 */
#define KYOZON_FEATURE_SPAWN 8

/*
 [`GuestBoot::features`]: regions can be created, mapped and revoked while the guest runs.
 */
#define KYOZON_FEATURE_REGIONS 16

/*
 `address`, `bytes`, `stream`: writes to a stream, [`STREAM_OUTPUT`] or [`STREAM_ERROR`]. The result is the number of
 bytes written, which MAY be fewer than `bytes`, but is 0 only if `bytes` is 0.
 */
#define KYOZON_ASK_CONSOLE 1

/*
 `status`, at most [`MAX_STATUS`], `how`: ends the guest. `how` is [`EXIT_ALONE`] or [`EXIT_WITH_OWNER`], which
 differ for a bound peer only, see "Spawning". The call returns only on an error.
 */
#define KYOZON_ASK_EXIT 2

/*
 `address`, `bytes`: ends the guest with a crash report and the status [`STATUS_PANIC`]. The bytes are the reason in
 UTF-8, which the tender MAY truncate. The call returns only on an error.
 */
#define KYOZON_ASK_PANIC 3

/*
 `deadline`, in nanoseconds of the clock, or [`NO_DEADLINE`]: sleeps. The result is 0, or 1 if the deadline has
 passed.
 */
#define KYOZON_ASK_PARK 4

/*
 The result is the group's clock in nanoseconds.
 */
#define KYOZON_ASK_CLOCK 5

/*
 The result is the number of nanoseconds since 1970 on the host's clock, which MAY jump.
 */
#define KYOZON_ASK_TIME_OF_DAY 6

/*
 `address`, `bytes`: fills memory with random bytes that are fit for keys; at most [`MAX_RANDOM_BYTES`].
 */
#define KYOZON_ASK_RANDOM 7

/*
 `address`, `bytes`, both multiples of 4096, in the heap: gives pages back to the host. They read as zero afterwards.
 */
#define KYOZON_ASK_DISCARD 8

/*
 `entry`, `argument`, `stack`, `bytes`, `bound`: starts a peer that shares this peer's image, heap and stacks, see
 "Spawning". The result is the peer's number plus 2^32 times its generation modulo 2^31.

 If `bound` is not 0, it is 1 more than the number of a peer of the same family, which may be the caller; the new
 peer is bound to that peer.

 Errors: [`ERROR_ADDRESS`] if entry or stack break the rules; [`ERROR_NAME`] if no peer has the number in `bound`,
 [`ERROR_RIGHT`] if that peer belongs to another family; [`ERROR_UNSUPPORTED`] without
 [`FEATURE_SPAWN`](super::FEATURE_SPAWN).
 */
#define KYOZON_ASK_SPAWN 9

/*
 `peer`, `generation`: ends a spawned peer of the same family, whatever it is doing. Its state becomes
 [`PEER_DEAD`](super::PEER_DEAD); the call does not wait for that. The result is 0, also if this peer is already
 gone.

 Errors: [`ERROR_RIGHT`] if the peer belongs to another family or was not spawned; [`ERROR_NAME`] if it never
 existed.
 */
#define KYOZON_ASK_END 10

/*
 `name`, `name bytes`, `bytes`, `address`: creates a region without mapping it. `bytes` is its size including the
 header's page, a multiple of 4096. If `address` is 0, the tender chooses the address. The result is the region's
 number. The creator owns the region and has every right to it.

 Error: [`ERROR_UNSUPPORTED`] without [`FEATURE_REGIONS`](super::FEATURE_REGIONS).
 */
#define KYOZON_ASK_REGION_CREATE 16

/*
 `name`, `name bytes`, `info`: the result is the number of the region with this name that this peer was granted. The
 tender writes a [`SharedRegion`](super::SharedRegion) to `info`; its rights are the granted rights.
 */
#define KYOZON_ASK_REGION_OPEN 17

/*
 `region`, `rights`: maps the region at its address with the rights `REGION_*`, which MUST have been granted. If the
 region is already mapped, these rights replace the rights it had; the result is 0 also if they are the same.
 */
#define KYOZON_ASK_REGION_MAP 18

/*
 `region`: unmaps it.
 */
#define KYOZON_ASK_REGION_UNMAP 19

/*
 `region`, `peer`, `rights`: allows the peer to map the region with these rights. Only the owner may call this. A
 peer that has the region mapped with more rights loses the mapping, as by [`ASK_REGION_REVOKE`], and MAY map it
 again.
 */
#define KYOZON_ASK_REGION_GRANT 20

/*
 `region`, `peer`: takes all rights to the region from the peer. Only the owner may call this. If the peer has the
 region mapped, it loses the mapping before the call returns; a guest that cannot lose the mapping is ended.
 */
#define KYOZON_ASK_REGION_REVOKE 21

/*
 `region`, `count`, `deadline`: waits until `count` peers have mapped the region, at the same time or not; the header
 shows their present states. The result is the number of peers that have mapped it, or [`ERROR_TIMEOUT`].
 */
#define KYOZON_ASK_RENDEZVOUS 22

/*
 `device`, `info`: the tender writes a [`DeviceInfo`](super::DeviceInfo) to `info`. Error: [`ERROR_NAME`] if there is
 no device with this number.
 */
#define KYOZON_ASK_DEVICE 32

/*
 `device`, `queue`, `entries`, `descriptor table`, `available ring`, `used ring`: starts a queue.

 Errors: [`ERROR_EXISTS`] if it runs; [`ERROR_ARGUMENT`] if the number of entries is not allowed; [`ERROR_ADDRESS`]
 if a part lies outside the heap or is not aligned as VIRTIO section 2.7 requires.
 */
#define KYOZON_ASK_QUEUE_START 33

/*
 `device`, `queue`: stops the queue, whatever its state. The call returns when the device no longer touches the
 queue's memory. Entries that the device has not taken stay in the ring.
 */
#define KYOZON_ASK_QUEUE_STOP 34

/*
 `device`, `queue`: the result is `QUEUE_*`.
 */
#define KYOZON_ASK_QUEUE_STATE 35

/*
 The console.
 */
#define KYOZON_STREAM_OUTPUT 0

/*
 Messages that are no result; the tender's own reports go there, too.
 */
#define KYOZON_STREAM_ERROR 1

/*
 A bound peer exits, and its owner goes on.
 */
#define KYOZON_EXIT_ALONE 0

/*
 A bound peer exits, and ends its owner with the same status.
 */
#define KYOZON_EXIT_WITH_OWNER 1

/*
 A deadline that never passes.
 */
#define KYOZON_NO_DEADLINE 18446744073709551615ull

/*
 Maximum bytes of one [`ASK_RANDOM`].
 */
#define KYOZON_MAX_RANDOM_BYTES 4096

/*
 Maximum status that a guest may end with. Some of them are also the tender's, see `STATUS_*`.
 */
#define KYOZON_MAX_STATUS 255

/*
 The tender's status for a guest that panicked.
 */
#define KYOZON_STATUS_PANIC 101

/*
 The tender's status for a guest that crashed.
 */
#define KYOZON_STATUS_CRASH 120

/*
 The tender's status for a guest that exceeded its time limit.
 */
#define KYOZON_STATUS_TIMEOUT 124

/*
 The call does not exist.
 */
#define KYOZON_ERROR_CALL -1

/*
 An address is not the guest's, is not aligned, or lacks the right.
 */
#define KYOZON_ERROR_ADDRESS -2

/*
 A number is out of range, or an argument that must be 0 is not.
 */
#define KYOZON_ERROR_ARGUMENT -3

/*
 No region, peer or device has this name or number.
 */
#define KYOZON_ERROR_NAME -4

/*
 It already exists, or something else occupies the addresses.
 */
#define KYOZON_ERROR_EXISTS -5

/*
 The right was not granted, or the caller is not the owner.
 */
#define KYOZON_ERROR_RIGHT -6

/*
 No room is left: regions, peers, or the host's memory.
 */
#define KYOZON_ERROR_FULL -7

/*
 The deadline has passed.
 */
#define KYOZON_ERROR_TIMEOUT -8

/*
 This backend does not support the call.
 */
#define KYOZON_ERROR_UNSUPPORTED -9

/*
 Maximum bytes of a region's name, which consists of letters, digits, `-`, `_` and `.`.
 */
#define KYOZON_REGION_NAME_BYTES 32

/*
 [`SharedRegion::rights`]: the guest may read.
 */
#define KYOZON_REGION_READ 1

/*
 [`SharedRegion::rights`]: the guest may write.
 */
#define KYOZON_REGION_WRITE 2

/*
 [`RegionHeader::magic`], "KYOZREG" in memory.
 */
#define KYOZON_REGION_MAGIC 20060943351241035

/*
 Bytes before a region's data.
 */
#define KYOZON_REGION_HEADER_BYTES 4096

/*
 [`RegionPeer::state`]: the peer never had the region mapped.
 */
#define KYOZON_PEER_ABSENT 0

/*
 [`RegionPeer::state`]: the peer has the region mapped.
 */
#define KYOZON_PEER_PRESENT 1

/*
 [`RegionPeer::state`]: the peer unmapped the region, or exited.
 */
#define KYOZON_PEER_LEFT 2

/*
 [`RegionPeer::state`]: the peer crashed, was ended, or lost its right. The locks that it held, and their data, are
 in an unknown state.
 */
#define KYOZON_PEER_DEAD 3

/*
 First doorbell number of queues; lower numbers are peers.
 */
#define KYOZON_QUEUE_DOORBELL (uint32_t)KYOZON_MAX_PEERS

/*
 Maximum number of queues of all devices of a guest.
 */
#define KYOZON_MAX_QUEUES 32

/*
 Maximum bytes of a device's name, which consists of the same characters as a region's name.
 */
#define KYOZON_DEVICE_NAME_BYTES 32

/*
 Maximum bytes of a configuration space.
 */
#define KYOZON_DEVICE_CONFIG_BYTES 64

/*
 [`DeviceInfo::kind`]: a network device (section 5).
 */
#define KYOZON_DEVICE_NET 1

/*
 [`DeviceInfo::kind`]: a block device (section 5).
 */
#define KYOZON_DEVICE_BLOCK 2

/*
 Result of [`ASK_QUEUE_STATE`](super::ASK_QUEUE_STATE): the queue was not started, or was stopped.
 */
#define KYOZON_QUEUE_STOPPED 0

/*
 Result of [`ASK_QUEUE_STATE`](super::ASK_QUEUE_STATE): the device takes entries.
 */
#define KYOZON_QUEUE_RUNNING 1

/*
 Result of [`ASK_QUEUE_STATE`](super::ASK_QUEUE_STATE): the queue broke a rule.
 */
#define KYOZON_QUEUE_FAILED 2

/*
 Port `PORT_FAULT + v`, `v` below 256: exception `v` was delivered, its frame is at `rsp`.
 */
#define KYOZON_PORT_FAULT 0

/*
 Port of hypercalls.
 */
#define KYOZON_PORT_CALL 1280

/*
 Port of doorbells: 4 bytes with the number of the peer or queue.
 */
#define KYOZON_PORT_DOORBELL 1284

/*
 End of the ports that a guest can access, exclusive.
 */
#define KYOZON_PORT_END 1288

/*
 Exceptions that push an error code: one bit per vector (Intel SDM volume 3, table 7-1).
 */
#define KYOZON_VECTORS_WITH_ERROR 1612872960

/*
 #DE.
 */
#define KYOZON_VECTOR_DIVIDE 0

/*
 #BP.
 */
#define KYOZON_VECTOR_BREAKPOINT 3

/*
 #UD.
 */
#define KYOZON_VECTOR_INVALID_OPCODE 6

/*
 #GP.
 */
#define KYOZON_VECTOR_PROTECTION 13

/*
 #PF.
 */
#define KYOZON_VECTOR_PAGE 14

/*
 Version of this interface.
 */
#define KYOZON_VMM_VERSION 10

/*
 In [`HostEntry::off_types`]: no type switches the machine off.
 */
#define KYOZON_SLEEP_UNKNOWN 8

/*
 Virtual address at which the hypervisor is linked. Nothing in the cokernel's world uses it.
 */
#define KYOZON_HYPERVISOR_BASE 134217728

/*
 In the hypervisor's world, physical address `p` is mapped at `HOST_WINDOW_BASE + p`, readable and writable, if it
 belongs to System RAM, to the reserve, or to a device page that [`HostEntry`] names.
 */
#define KYOZON_HOST_WINDOW_BASE 70368744177664

/*
 The stack of CPU `n` ends at `HOST_STACKS + (n + 1) * HOST_STACK_STRIDE`, exclusive.
 */
#define KYOZON_HOST_STACKS 167772160

/*
 Bytes between the ends of neighbouring stacks. The memory between two stacks is not mapped.
 */
#define KYOZON_HOST_STACK_STRIDE 65536

/*
 Bytes of one CPU's stack.
 */
#define KYOZON_HOST_STACK_BYTES 16384

/*
 Maximum number of CPUs.
 */
#define KYOZON_HOST_MAX_CPUS 64

/*
 [`HostEntry::operation`]: turns this CPU's present state into a guest. It returns to its caller as that guest.
 */
#define KYOZON_HOST_LAUNCH 1

/*
 [`HostEntry::operation`]: ends the guest and gives this CPU back to Linux. Allowed after [`CALL_OPEN`] on this CPU.
 */
#define KYOZON_HOST_LEAVE 2

/*
 From Linux: hides the reserve on this CPU from now on.
 */
#define KYOZON_CALL_SEAL 1264123905

/*
 From Linux, with the key of [`HostEntry::key`] in RDI and RSI: makes all memory visible on this CPU again.
 */
#define KYOZON_CALL_OPEN 1264123906

/*
 From Linux, on the cokernel's CPU, with the key: starts the ticks, unless they run.
 */
#define KYOZON_CALL_START 1264123907

/*
 From Linux, with the key: stops the ticks. If another CPU calls it, a trip may still be in progress.
 */
#define KYOZON_CALL_STOP 1264123908

/*
 From the hypervisor's own code only, in Linux's guest but in the hypervisor's world: gives this CPU back.
 */
#define KYOZON_CALL_LEAVE 1264123909

/*
 From Linux, which suspects that ticks are missing: checks whether the next tick is overdue, and reports it.
 */
#define KYOZON_CALL_CHECK_TICK 1264123910

/*
 From the cokernel: writes the word RSI to physical address RDI in Linux's System RAM. The result is 0, or -1 if the
 address is not allowed.
 */
#define KYOZON_CALL_WRITE 1264123920

/*
 From the cokernel: writes the line in the [`Mailbox`] to the event ring and the serial line.
 */
#define KYOZON_CALL_REPORT 1264123921

/*
 From the cokernel: publishes the status in the [`Mailbox`] as the one with index RDI.
 */
#define KYOZON_CALL_PUBLISH 1264123922

/*
 From the cokernel: writes Linux's registers on this CPU to the [`Mailbox`].
 */
#define KYOZON_CALL_REGISTERS 1264123923

/*
 From the cokernel: sends what is left for the serial line, and asks Linux to start its crash kernel. A call two
 seconds later resets the machine; before that, the result is [`RESET_WAITS`]. If RDI is
 [`RESET_ONLY`](crate::task::RESET_ONLY), the first call resets it.
 */
#define KYOZON_CALL_RESET 1264123924

/*
 The result of [`CALL_RESET`] while Linux may still start its crash kernel.
 */
#define KYOZON_RESET_WAITS 1

/*
 From the cokernel: watches Linux's writes to the RSI bytes at physical address RDI, which it patches in the address
 space RDX. The result is 0, or -1 if they are no whole pages of System RAM, or there is no room.
 */
#define KYOZON_CALL_WATCH 1264123925

/*
 From the cokernel: moves watched writes to the [`Mailbox`].
 */
#define KYOZON_CALL_WRITES 1264123926

/*
 [`HostEntry::result`]: success.
 */
#define KYOZON_HOST_DONE 0

/*
 [`HostEntry::result`]: the version differs, or memory ran out.
 */
#define KYOZON_HOST_REFUSED 1

/*
 Number of counters in [`HostStatus::exits`]; `EXIT_*` are indices into it.
 */
#define KYOZON_EXIT_REASONS 16

/*
 Non-maskable interrupts of the tick and of its guard.
 */
#define KYOZON_EXIT_TICK 0

/*
 Non-maskable interrupts that belong to Linux; the hypervisor passes them on.
 */
#define KYOZON_EXIT_NMI 1

/*
 IRETs and single steps that end Linux's own handler of a non-maskable interrupt.
 */
#define KYOZON_EXIT_NMI_END 2

/*
 Accesses to hidden memory.
 */
#define KYOZON_EXIT_HIDDEN 3

/*
 Writes to the tick's devices, or to memory that Linux may only read.
 */
#define KYOZON_EXIT_WRITE 4

/*
 Single steps over an access of these two kinds, or over a write to watched memory.
 */
#define KYOZON_EXIT_STEP 5

/*
 First accesses to addresses that are mapped on demand.
 */
#define KYOZON_EXIT_MAP 6

/*
 Writes to registers that could undo the isolation.
 */
#define KYOZON_EXIT_MSR 7

/*
 Calls from the module.
 */
#define KYOZON_EXIT_CALL 8

/*
 SVM instructions. The hypervisor does not offer SVM to Linux.
 */
#define KYOZON_EXIT_SVM 9

/*
 INIT signals.
 */
#define KYOZON_EXIT_INIT 10

/*
 Non-maskable interrupts by which the cokernel's CPU parked the other CPUs.
 */
#define KYOZON_EXIT_PARK 11

/*
 Anything else.
 */
#define KYOZON_EXIT_OTHER 12

/*
 Writes to watched memory.
 */
#define KYOZON_EXIT_WATCH 13

/*
 Maximum number of IOMMUs that the hypervisor drives.
 */
#define KYOZON_HOST_MAX_IOMMUS 8

/*
 Bytes of an IOMMU's registers that the hypervisor uses.
 */
#define KYOZON_HOST_IOMMU_BYTES 16384

/*
 Maximum bytes of text in a [`Mailbox`].
 */
#define KYOZON_MAILBOX_BYTES 256

/*
 Version of this interface.
 */
#define KYOZON_LIBRARY_VERSION 3

/*
 Alignment of the kernel's memory in bytes: the largest block of Linux's page allocator.
 */
#define KYOZON_LIBRARY_MEMORY_ALIGN (4 << 20)

/*
 Minimum bytes of the kernel's memory, including its image.
 */
#define KYOZON_LIBRARY_MEMORY_MIN (32 << 20)

/*
 Maximum bytes of the command line, including the closing zero.
 */
#define KYOZON_LIBRARY_COMMAND_LINE_BYTES 2048

/*
 Number of interrupt lines. Line 0 belongs to the timer.
 */
#define KYOZON_LIBRARY_INTERRUPTS 64

/*
 A deadline that never comes.
 */
#define KYOZON_LIBRARY_NEVER 18446744073709551615ull

/*
 [`LibraryThread::kind`]: a system call.
 */
#define KYOZON_LIBRARY_SYSCALL 0

/*
 [`LibraryThread::kind`]: make a task for this host thread. The result is its thread id.
 */
#define KYOZON_LIBRARY_ATTACH 1

/*
 [`LibraryThread::kind`]: end this host thread's task.
 */
#define KYOZON_LIBRARY_DETACH 2

/*
 [`LibraryThread::done`]: the request is not complete.
 */
#define KYOZON_LIBRARY_PENDING 0

/*
 [`LibraryThread::done`]: the request is complete.
 */
#define KYOZON_LIBRARY_DONE 1

/*
 [`LibraryThread::done`]: the request is not complete, and the host thread waits.
 */
#define KYOZON_LIBRARY_PARKED 2

/*
 Version of the requests.
 */
#define KYOZON_TYPED_VERSION 2

/*
 Start of the region that programs for the kernel are made for.
 */
#define KYOZON_TYPED_REGION 268435456

/*
 Bytes that are reserved for the region: each 32-bit index, scaled by up to 8, plus each 32-bit offset.
 */
#define KYOZON_TYPED_RESERVED 42949672960

/*
 Most bytes of a program's file.
 */
#define KYOZON_TYPED_MAX_FILE (16 << 20)

/*
 Bytes of the line that explains why a request failed, including the closing zero.
 */
#define KYOZON_TYPED_MESSAGE_BYTES 256

/*
 Handles that a program can have.
 */
#define KYOZON_TYPED_HANDLES 16

/*
 `ioctl` request: [`TypedCheck`], `_IOWR('K', 16, struct kyozon_typed_check)`.
 */
#define KYOZON_IOCTL_TYPED_CHECK 3240643344

/*
 `ioctl` request: [`TypedLoad`], `_IOWR('K', 17, struct kyozon_typed_load)`.
 */
#define KYOZON_IOCTL_TYPED_LOAD 3241691921

/*
 `ioctl` request: [`TypedRun`], `_IOWR('K', 18, struct kyozon_typed_run)`.
 */
#define KYOZON_IOCTL_TYPED_RUN 3252177682

/*
 `ioctl` request: [`TypedFilter`], `_IOWR('K', 19, struct kyozon_typed_filter)`.
 */
#define KYOZON_IOCTL_TYPED_FILTER 3239070483

/*
 Number of the import that ends the program: Linux's number of the system call, as for each of these.
 */
#define KYOZON_TYPED_EXIT 60

/*
 Number of the import that returns the process's id.
 */
#define KYOZON_TYPED_GETPID 39

/*
 Number of the import that reads from the file of a handle: handle, address, bytes.
 */
#define KYOZON_TYPED_READ 0

/*
 Number of the import that writes to the file of a handle: handle, address, bytes.
 */
#define KYOZON_TYPED_WRITE 1

/*
 Number of the import that writes a `struct stat` about the file of a handle: handle, address.
 */
#define KYOZON_TYPED_FSTAT 5

/*
 Number of the import that moves the position of the file of a handle: handle, offset, and from where.
 */
#define KYOZON_TYPED_LSEEK 8

/*
 Number of the import that reads at a position: handle, address, bytes, position.
 */
#define KYOZON_TYPED_PREAD 17

/*
 Number of the import that writes at a position: handle, address, bytes, position.
 */
#define KYOZON_TYPED_PWRITE 18

/*
 Number of the import that gives a view of the file of a handle, from an offset on: handle, offset. It is memory of
 the page cache, up to the end of the page or file, and stays until the program ends. It is empty at the end, and
 if the file or the limit of locked memory (RLIMIT_MEMLOCK, in steps of some 2 MiB) does not allow it.
 */
#define KYOZON_TYPED_FILE_VIEW 32777

/*
 Number of the import that receives a packet by the packet socket of a handle, and gives a view of what of it lies in
 one piece: its headers at least. The packet stays until the program ends, and so long counts towards the socket's
 memory (SO_RCVBUF). The view is empty if there is no packet.
 */
#define KYOZON_TYPED_PACKET_VIEW 32778

/*
 Number of the import that gives a view of the next packet of the device's filter: bytes. As many bytes from its
 start lie in one piece, or all of a packet that is shorter; of a packet that was merged from several, its headers.
 The packet stays until the program ends, and then takes the way that the program said. The view is empty if there
 is no packet, or the program has as many as it can have at once.
 */
#define KYOZON_TYPED_FILTER_VIEW 32779

/*
 Number of the import that says what becomes of the packet that the filter gave last: `TYPED_DROP` or `TYPED_PASS`,
 which is also what becomes of a packet without a verdict. The result is 0, or an error: there is no such packet, or
 no such verdict.
 */
#define KYOZON_TYPED_VERDICT 4096

/*
 A verdict: Linux's stack never gets the packet.
 */
#define KYOZON_TYPED_DROP 0

/*
 A verdict: Linux's stack gets the packet.
 */
#define KYOZON_TYPED_PASS 1

/*
 [`TypedLoad::imports`]: the process answers calls of this import.
 */
#define KYOZON_TYPED_OUTSIDE 4294967295

/*
 Imports that a process can answer: the first ones of a program's file.
 */
#define KYOZON_TYPED_OUTSIDE_GATES 64

/*
 WASI preview 1 of a compiled program's first memory: a function's number is this plus its place in WASI's
 definition, in alphabetical order. The kernel makes the calls of those that follow, if `TypedRun::handles` and
 `operations` allow it; the process answers all other calls, and those that failed.
 */
#define KYOZON_TYPED_WASI 256

/*
 Number of `clock_time_get`.
 */
#define KYOZON_TYPED_WASI_CLOCK_TIME_GET (KYOZON_TYPED_WASI + 5)

/*
 Number of `fd_filestat_get`.
 */
#define KYOZON_TYPED_WASI_FD_FILESTAT_GET (KYOZON_TYPED_WASI + 13)

/*
 Number of `fd_pread`.
 */
#define KYOZON_TYPED_WASI_FD_PREAD (KYOZON_TYPED_WASI + 16)

/*
 Number of `fd_pwrite`.
 */
#define KYOZON_TYPED_WASI_FD_PWRITE (KYOZON_TYPED_WASI + 19)

/*
 Number of `fd_read`.
 */
#define KYOZON_TYPED_WASI_FD_READ (KYOZON_TYPED_WASI + 20)

/*
 Number of `fd_seek`.
 */
#define KYOZON_TYPED_WASI_FD_SEEK (KYOZON_TYPED_WASI + 23)

/*
 Number of `fd_tell`.
 */
#define KYOZON_TYPED_WASI_FD_TELL (KYOZON_TYPED_WASI + 25)

/*
 Number of `fd_write`.
 */
#define KYOZON_TYPED_WASI_FD_WRITE (KYOZON_TYPED_WASI + 26)

/*
 [`TypedRun::operations`]: `fd_read`.
 */
#define KYOZON_TYPED_MAY_READ 1

/*
 [`TypedRun::operations`]: `fd_write`.
 */
#define KYOZON_TYPED_MAY_WRITE 2

/*
 [`TypedRun::operations`]: `fd_pread`.
 */
#define KYOZON_TYPED_MAY_PREAD 4

/*
 [`TypedRun::operations`]: `fd_pwrite`.
 */
#define KYOZON_TYPED_MAY_PWRITE 8

/*
 [`TypedRun::operations`]: `fd_seek`.
 */
#define KYOZON_TYPED_MAY_SEEK 16

/*
 [`TypedRun::operations`]: `fd_tell`.
 */
#define KYOZON_TYPED_MAY_TELL 32

/*
 [`TypedRun::operations`]: `fd_filestat_get`.
 */
#define KYOZON_TYPED_MAY_STATUS 64

/*
 [`TypedFilter::flags`]: packets that come while the queue is full pass, before those that are queued. Without it,
 they are dropped.
 */
#define KYOZON_TYPED_FULL_PASSES 1

/*
 [`TypedRun::outcome`]: the entry returned `result`, or 0 if it has no result.
 */
#define KYOZON_TYPED_RETURNED 0

/*
 [`TypedRun::outcome`]: the program ended itself, with `result`.
 */
#define KYOZON_TYPED_EXITED 1

/*
 [`TypedRun::outcome`]: the instruction at `offset` accessed an address of the region where there is no memory.
 */
#define KYOZON_TYPED_FAULTED 2

/*
 [`TypedRun::outcome`]: the division at `offset` has no result.
 */
#define KYOZON_TYPED_DIVIDED 3

/*
 [`TypedRun::outcome`]: the program executed ud2 at `offset`.
 */
#define KYOZON_TYPED_TRAPPED 4

/*
 [`TypedRun::outcome`]: a vector operand of the instruction at `offset` is not aligned.
 */
#define KYOZON_TYPED_MISALIGNED 5

/*
 [`TypedRun::outcome`]: the program calls the import number `offset`, with `arguments`. If `result` is not 0, the
 kernel made the call, which ended with this error: Linux's number, negative. The next request answers with `result`,
 and continues the program.
 */
#define KYOZON_TYPED_CALLED 6

/*
 [`TypedChecker::host`]: the text may have indirect branches of its own.
 */
#define KYOZON_TYPED_INDIRECT_BRANCHES 1

/*
 [`TypedChecker::host`]: indirect branch tracking is on.
 */
#define KYOZON_TYPED_TRACKING 2

/*
 [`TypedChecker::host`]: the checker panics, for a test of what follows.
 */
#define KYOZON_TYPED_PANIC 2147483648

/*
 [`TypedChecker::properties`]: an instruction uses vector registers.
 */
#define KYOZON_TYPED_USES_VECTORS 1

/*
 [`TypedBuild::properties`]: the entry has a result. Without one, rax has what must not be made known.
 */
#define KYOZON_TYPED_HAS_RESULT 1

/*
 Thunks that an image needs: one for each general register, and one that returns.
 */
#define KYOZON_TYPED_THUNKS 17

/*
 [`TypedChecker::result`]: the program is safe.
 */
#define KYOZON_TYPED_ACCEPTED 0

/*
 [`TypedChecker::result`]: a rule is broken; `message` has it.
 */
#define KYOZON_TYPED_REFUSED 1

/*
 [`TypedChecker::result`]: `memory` does not suffice for this program.
 */
#define KYOZON_TYPED_NO_MEMORY 2

/*
 [`TypedChecker::result`]: the module ended the check.
 */
#define KYOZON_TYPED_STOPPED 3

/*
 [`TypedChecker::result`]: the checker has a bug; `message` has the place.
 */
#define KYOZON_TYPED_PANICKED 4

/*
 The first bytes of an image. Text, read-only data and data follow in this order, each from a page boundary on.
 */
struct kyozon_image_header {
        /*
         [`IMAGE_MAGIC`].
         */
        uint64_t magic;
        /*
         [`LAYER_VERSION`](super::LAYER_VERSION).
         */
        uint32_t version;
        /*
         `IMAGE_*`.
         */
        uint32_t kind;
        /*
         Virtual address of this header.
         */
        uint64_t base;
        /*
         Bytes of text from `base` on, a multiple of 4096. Mapped readable and executable.
         */
        uint64_t text_bytes;
        /*
         Bytes of read-only data after the text, a multiple of 4096.
         */
        uint64_t rodata_bytes;
        /*
         Bytes of initialised data in the file, after the read-only data. Mapped readable and writable.
         */
        uint64_t data_bytes;
        /*
         Bytes of memory from the start of data to the end of bss: a multiple of 4096, at least `data_bytes`.
         */
        uint64_t memory_bytes;
        /*
         Virtual address of the entry: the layer's `extern "C" fn(*const LayerEntry, *mut Trip)`, called on each tick, or
         the cokernel's `start`, `extern "C" fn(*const BootBlock)`.
         */
        uint64_t entry;
};

/*
 A range of addresses: physical, unless the field that holds it says otherwise.
 */
struct kyozon_range {
        /*
         First address, a multiple of 4096.
         */
        uint64_t base;
        /*
         Bytes; a multiple of 4096 if the range is physical.
         */
        uint64_t bytes;
};

/*
 The module's description of the machine and of the images, complete before the layer is entered for the first time.
 It lies in the layer's own memory.
 */
struct kyozon_layer_entry {
        /*
         [`LAYER_VERSION`](super::LAYER_VERSION).
         */
        uint32_t version;
        /*
         `MODE_*`.
         */
        uint32_t mode;
        /*
         Time-stamp counter ticks per millisecond.
         */
        uint64_t tsc_khz;
        /*
         Ticks per second, 1..=2000.
         */
        uint32_t tick_hz;
        /*
         Microseconds that one trip may take before the layer cuts the cokernel off.
         */
        uint32_t budget_us;
        /*
         Linux's logical number of the cokernel's CPU.
         */
        uint32_t cpu;
        /*
         Levels of the page tables that are active while the cokernel runs: 4 or 5.
         */
        uint32_t paging_levels;
        /*
         Virtual address of the cokernel's image: [`COKERNEL_BASE`](super::COKERNEL_BASE).
         */
        uint64_t cokernel;
        /*
         Virtual address of the cokernel's free memory: [`MEMORY_BASE`](super::MEMORY_BASE).
         */
        uint64_t memory;
        /*
         Bytes of `memory`.
         */
        uint64_t memory_bytes;
        /*
         CR3 of the cokernel's world.
         */
        uint64_t page_table;
        /*
         The same as [`BootBlock::tables`](super::BootBlock::tables).
         */
        uint64_t tables;
        /*
         Virtual address of the trampoline's task state segment. The layer sets its ring-0 stack.
         */
        uint64_t tss;
        /*
         Virtual address of the trampoline's interrupt descriptor table. The layer fills in the gates.
         */
        uint64_t idt;
        /*
         Virtual address of the event ring, 0 for none.
         */
        uint64_t events;
        /*
         Bytes of the event ring.
         */
        uint64_t events_bytes;
        /*
         I/O port of the serial line for events and reports, 0 for none.
         */
        uint32_t serial_port;
        /*
         Number of valid entries in `ram`.
         */
        uint32_t ram_count;
        /*
         System RAM of the machine without the reserve, and what Linux may add to it, in ascending order.
         */
        struct kyozon_range ram[KYOZON_MAX_RANGES];
        /*
         Virtual address, the same in both worlds, of the [`Trip`](super::Trip) that module and layer share.
         */
        uint64_t trip;
        /*
         Virtual address of the last-level page-table entry that maps `poke`. The layer points this entry at the page
         that it repairs.
         */
        uint64_t poke_entry;
        /*
         Virtual address of one page that has no translation of its own.
         */
        uint64_t poke;
        /*
         Virtual address of the registers of the timer that guards the budget, 0 if the tick source has no such timer.
         */
        uint64_t guard;
        /*
         Byte offset of the guard's comparator in these registers.
         */
        uint32_t guard_comparator;
        /*
         Byte offset of the main counter in these registers.
         */
        uint32_t guard_counter;
        /*
         Ticks of the main counter per tick of the time-stamp counter, times 2^32.
         */
        uint64_t guard_per_tsc;
        /*
         Bytes of text of the cokernel's image. Kernel-mode code can be cut off only there.
         */
        uint64_t cokernel_text_bytes;
        /*
         Bytes of the cokernel's image including its data.
         */
        uint64_t cokernel_bytes;
        /*
         Number of valid entries in `pieces`.
         */
        uint64_t piece_count;
        /*
         Physical pieces of the cokernel's memory, in the order of their virtual addresses.
         */
        struct kyozon_range pieces[KYOZON_MAX_RANGES];
        /*
         Number of valid entries in `tasks`.
         */
        uint64_t task_count;
        /*
         Task images: virtual address, and bytes before rounding up to pages.
         */
        struct kyozon_range tasks[KYOZON_MAX_TASKS];
        /*
         The operator's parameter for the cokernel.
         */
        uint64_t parameter;
        /*
         1 if the real-time clock is the tick source: its interrupt must be acknowledged before it raises the next one.
         */
        uint64_t acknowledge;
        /*
         The operator's data for the cokernel: virtual address, and bytes before rounding up to pages.
         */
        struct kyozon_range data;
        /*
         Virtual address of the `vmm::Mailbox`, 0 if there is no hypervisor.
         */
        uint64_t mailbox;
        /*
         Zero.
         */
        uint64_t reserved;
};

/*
 The structure that the layer passes to the cokernel's `start`, by address in the first argument register.

 Functions use the System V calling convention. Those that return `i64` return 0 on success, else `REPAIR_*` or
 `SERVICE_*`.
 */
struct kyozon_boot_block {
        /*
         [`LAYER_VERSION`](super::LAYER_VERSION).
         */
        uint32_t version;
        /*
         `MODE_*`.
         */
        uint32_t mode;
        /*
         Time-stamp counter ticks per millisecond.
         */
        uint64_t tsc_khz;
        /*
         Ticks per second.
         */
        uint32_t tick_hz;
        /*
         Microseconds that one trip may take before the layer cuts the cokernel off.
         */
        uint32_t budget_us;
        /*
         Virtual address of the memory that the cokernel may use freely.
         */
        uint64_t memory;
        /*
         Bytes of `memory`.
         */
        uint64_t memory_bytes;
        /*
         `extern "C" fn()`: gives the CPU back; returns at a later tick. See [`TickEvent`].
         */
        uint64_t idle;
        /*
         `extern "C" fn(*mut Window) -> i64`: reports which ranges of Linux's memory can be read.
         */
        uint64_t linux_window;
        /*
         `extern "C" fn(*const RepairRequest) -> i64`: runs a repair transaction; returns `REPAIR_*`.
         */
        uint64_t linux_repair;
        /*
         `extern "C" fn(*const Report) -> i64`: writes a line to the event ring and to the serial line.
         */
        uint64_t report;
        /*
         `extern "C" fn(u64, *const StatusWords) -> i64`: sets what `kyozon status` shows of the check with this index,
         or of the monitor if the index is [`MONITOR_INDEX`](crate::events::MONITOR_INDEX).
         */
        uint64_t publish;
        /*
         `extern "C" fn(*const Handlers) -> i64`: sets the cokernel's entry points.
         */
        uint64_t handlers;
        /*
         `extern "C" fn(*mut Frame) -> i64`: enters user mode; returns only if it refuses. The layer forces the frame's
         selectors and flags to values that user mode may have.
         */
        uint64_t enter_user;
        /*
         CR3 when `start` is called.
         */
        uint64_t page_table;
        /*
         Virtual address of a read-only view of the tables, from the one at `page_table` down to level 3, a page each.
         Each is the one that entry 0 of the table before it names.

         An address space that the cokernel makes starts as a copy of these tables. The cokernel uses level-4 entries
         that are zero here, and in the level-3 table those from [`FREE_BASE`](super::FREE_BASE) to
         [`MEMORY_BASE`](super::MEMORY_BASE). It never sets the global bit.
         */
        uint64_t tables;
        /*
         Levels of the page tables: 4 or 5.
         */
        uint32_t paging_levels;
        /*
         Number of entries in `pieces`.
         */
        uint32_t piece_count;
        /*
         Virtual address of an array of [`Range`]: the physical pieces of `memory`, in the order of their virtual
         addresses.
         */
        uint64_t pieces;
        /*
         Virtual address of an array of [`Range`]: virtual address and bytes of each task image.
         */
        uint64_t tasks;
        /*
         Number of entries in `tasks`.
         */
        uint64_t task_count;
        /*
         The operator's parameter.
         */
        uint64_t parameter;
        /*
         The operator's data, read-only: virtual address and bytes. The layer does not check its contents.
         */
        struct kyozon_range data;
        /*
         Virtual address of a word that has [`WORK_TICK`] set while a tick waits for the cokernel.
         */
        uint64_t work;
        /*
         `extern "C" fn(*mut LinuxRegisters) -> i64`: reports the system registers of this CPU as Linux left them.
         */
        uint64_t linux_registers;
        /*
         `extern "C" fn(u64) -> i64`: sends what is left for the serial line, has Linux start its crash kernel if it has
         one, unless the argument is [`RESET_ONLY`](crate::task::RESET_ONLY), and resets the machine. Returns only if
         there is no Linux.
         */
        uint64_t reset;
        /*
         `extern "C" fn(u64, u64, u64) -> i64`: Linux's writes to this physical address and that many bytes behind it are
         watched from now on: whole pages of System RAM. The third number is the physical address of the top page table
         of the address space in which Linux patches this memory, or 0: breakpoints that are set there, and what changes
         behind them while they stand, are left out. Only with the hypervisor. Watched ranges stay watched.
         */
        uint64_t watch;
        /*
         `extern "C" fn(*mut Writes) -> i64`: fetches watched writes.
         */
        uint64_t writes;
        /*
         `extern "C" fn(*mut LinuxRegisters) -> i64`: reports the system registers of another CPU, if one has shown them
         since the last call, and asks the next one. Each CPU is asked once a second, or one CPU per tick. Otherwise
         [`SERVICE_UNAVAILABLE`](super::SERVICE_UNAVAILABLE). Only in mode none.
         */
        uint64_t other_registers;
        /*
         `extern "C" fn(u64) -> i64`: with 1, user mode has the x87 unit and the lower halves of the vector registers
         until the end of this trip; with 0, their use traps again (vector 7), as at the beginning of each trip. What
         user mode left there, it finds. For it, instructions that name an upper half are invalid. Kernel mode must use
         none of them.
         */
        uint64_t vectors;
};

/*
 Entry points of the cokernel. 0 keeps the layer's default: it stops the cokernel and reports the fault.
 */
struct kyozon_handlers {
        /*
         `extern "C" fn(*const TickEvent)`: records the tick and returns. It runs on the cokernel's stack, and only while
         the cokernel is in `idle` or in user mode; ticks at other times wait for one of the two.

         In mode alone the handler of a tick out of `idle` runs inside the NMI, so the CPU holds back further NMIs: the
         guard's interrupt is delivered after the handler has returned.
         */
        uint64_t tick;
        /*
         `extern "C" fn(*mut Frame)`: handles an exception or a tick (vector 2) that interrupted user mode, or `int
         0x80`. Returning resumes the frame. CR2 still holds the exception's address.
         */
        uint64_t user;
        /*
         Top of the stack that the CPU switches to when user mode is interrupted.
         */
        uint64_t user_stack;
        /*
         Virtual address and bytes of code that runs in kernel mode and is interrupted, cut off and resumed as user mode
         is; 0 bytes for none. Its frames have [`KERNEL_CODE_SELECTOR`]. It changes no register of the system, no segment
         and no vector register, and has 1 KiB of stack below its stack pointer.
         */
        struct kyozon_range typed;
};

/*
 One tick. Ticks that could not be delivered one by one, because the cokernel or firmware held the CPU, become one
 event that counts them.
 */
struct kyozon_tick_event {
        /*
         Number of this tick since load, including missed ticks.
         */
        uint64_t number;
        /*
         Ticks missed since the last event.
         */
        uint64_t missed;
        /*
         Time-stamp counter at which the tick was scheduled.
         */
        uint64_t scheduled_tsc;
        /*
         Time-stamp counter at Kyozon's first code for this tick. In mode alone: in the gate's stub, as soon as registers
         are saved. Beside Linux: in the module's NMI handler, when Linux has called it. For a tick that arrived while
         the cokernel ran, in every mode: when the layer read the clock.
         */
        uint64_t entered_tsc;
};

/*
 Interrupted state of a user task, as [`Handlers::user`] receives it. The fields are in the order of the pushes.
 */
struct kyozon_frame {
        uint64_t r15;
        uint64_t r14;
        uint64_t r13;
        uint64_t r12;
        uint64_t rbp;
        uint64_t rbx;
        uint64_t r11;
        uint64_t r10;
        uint64_t r9;
        uint64_t r8;
        uint64_t rax;
        uint64_t rcx;
        uint64_t rdx;
        uint64_t rsi;
        uint64_t rdi;
        uint64_t vector;
        uint64_t error;
        uint64_t rip;
        uint64_t cs;
        uint64_t rflags;
        uint64_t rsp;
        uint64_t ss;
};

/*
 Why the cokernel was stopped, or the registers of the last cut-off.
 */
struct kyozon_fault {
        /*
         `FAULT_*`, 0 for none.
         */
        uint32_t reason;
        /*
         Zero.
         */
        uint32_t reserved;
        /*
         CR2 at that time.
         */
        uint64_t cr2;
        /*
         CR3 at that time.
         */
        uint64_t cr3;
        /*
         The registers at that time.
         */
        struct kyozon_frame frame;
};

/*
 The part of Linux's state that changes only when the cokernel enters user mode.

 The layer saves it before the first entry to user mode in a trip. The layer and the trampoline restore it at the
 trip's end.
 */
struct kyozon_user_state {
        /*
         FS base.
         */
        uint64_t fs_base;
        /*
         GS base.
         */
        uint64_t gs_base;
        /*
         DS selector.
         */
        uint16_t ds;
        /*
         ES selector.
         */
        uint16_t es;
        /*
         FS selector.
         */
        uint16_t fs;
        /*
         GS selector.
         */
        uint16_t gs;
        /*
         Zero.
         */
        uint16_t reserved;
        /*
         Selector of the local descriptor table.
         */
        uint16_t ldt;
        /*
         `USER_*`: what the trampoline has to restore.
         */
        uint32_t switched;
};

/*
 System registers of a CPU, as Linux left them.
 */
struct kyozon_linux_registers {
        /*
         Linux's logical number of the CPU.
         */
        uint64_t cpu;
        /*
         Control register 0.
         */
        uint64_t cr0;
        /*
         Control register 4.
         */
        uint64_t cr4;
        /*
         Virtual address of the interrupt descriptor table.
         */
        uint64_t idt_base;
        /*
         Bytes of the interrupt descriptor table, less one.
         */
        uint64_t idt_limit;
        /*
         Virtual address of the global descriptor table.
         */
        uint64_t gdt_base;
        /*
         Bytes of the global descriptor table, less one.
         */
        uint64_t gdt_limit;
        /*
         EFER (MSR 0xc0000080).
         */
        uint64_t efer;
        /*
         STAR (MSR 0xc0000081).
         */
        uint64_t star;
        /*
         LSTAR (MSR 0xc0000082): the entry of 64-bit system calls.
         */
        uint64_t lstar;
        /*
         CSTAR (MSR 0xc0000083): the entry of 32-bit system calls.
         */
        uint64_t cstar;
        /*
         SFMASK (MSR 0xc0000084).
         */
        uint64_t sfmask;
        /*
         SYSENTER_CS (MSR 0x174).
         */
        uint64_t sysenter_cs;
        /*
         SYSENTER_ESP (MSR 0x175).
         */
        uint64_t sysenter_esp;
        /*
         SYSENTER_EIP (MSR 0x176).
         */
        uint64_t sysenter_eip;
        /*
         Debug registers 0 to 3: addresses of breakpoints.
         */
        uint64_t breakpoints[4];
        /*
         Debug register 7. In mode none, Linux's handler of non-maskable interrupts has cleared its enable bits.
         */
        uint64_t dr7;
};

/*
 One trip, that is one interruption of Linux: the values that module, trampoline and layer pass to each other on the
 way in and out.

 It lies in the module's data and is mapped at the same address in both worlds. Each field names its writer.
 */
struct kyozon_trip {
        /*
         Module: the tick that caused this trip. The layer passes it unchanged to the cokernel's tick handler.
         */
        struct kyozon_tick_event event;
        /*
         Module: time-stamp counter at which the budget is spent.
         */
        uint64_t deadline_tsc;
        /*
         Module, then layer: time-stamp counter at which the guard interrupts.
         */
        uint64_t guard_tsc;
        /*
         Module, then layer: time-stamp counter of the next tick.
         */
        uint64_t next_tsc;
        /*
         Module: time-stamp counter ticks per period.
         */
        uint64_t period_tsc;
        /*
         Layer: `TRIP_*`. The module sets [`TRIP_IDLE`] before it enters the layer.
         */
        uint32_t result;
        /*
         Layer: number of ticks that it delivered while the cokernel ran.
         */
        uint32_t ticks_inside;
        /*
         Module: number of guard interrupts that may still arrive although they were raised before the guard was armed
         for this trip.
         */
        uint32_t stale;
        /*
         Module and layer: whether the other CPUs are parked: `PARKED_*` in the low 2 bits, the number of the round in
         the other bits.
         */
        uint32_t parked;
        /*
         Layer: number of non-maskable interrupts that arrived while the cokernel ran and came from neither tick nor
         guard.
         */
        uint32_t foreign;
        /*
         Trampoline: number of non-maskable interrupts that arrived during a world switch.
         */
        uint32_t in_transit;
        /*
         Trampoline: 1 while the cokernel's world is complete, so that the layer's code may run.
         */
        uint32_t inside;
        /*
         Trampoline: 1 after a machine check.
         */
        uint32_t machine_check;
        /*
         Layer: address of its handler of non-maskable interrupts, entered as from the gate.
         */
        uint64_t nmi_entry;
        /*
         Layer: address of its machine-check handler, entered as from the gate.
         */
        uint64_t machine_check_entry;
        /*
         Layer: why it stopped the cokernel, or the registers of the last cut-off.
         */
        struct kyozon_fault fault;
        /*
         Layer: what has to be restored before Linux continues.
         */
        struct kyozon_user_state user;
        /*
         Module: time-stamp counter ticks by which the timer's clock and the time-stamp counter may disagree over a
         period: [`SLACK_US`] plus the period divided by [`SLACK_DIVISOR`].
         */
        uint64_t slack_tsc;
        /*
         Trampoline: Linux's global descriptor table, as SGDT stores it: 2 bytes of limit, 8 bytes of address.
         */
        uint64_t linux_gdtr[2];
        /*
         Trampoline: Linux's interrupt descriptor table, as SIDT stores it.
         */
        uint64_t linux_idtr[2];
        /*
         Module: time-stamp counter until which a CPU may still answer to [`LOOK_ASKED`].
         */
        uint64_t look_until_tsc;
        /*
         Module, CPU that was asked, and layer: the look at another CPU's registers: `LOOK_*` in the low 3 bits, Linux's
         number of the CPU in the other bits.
         */
        uint32_t look;
        /*
         Zero.
         */
        uint32_t reserved;
        /*
         CPU that was asked: its registers, complete in [`LOOK_SHOWN`].
         */
        struct kyozon_linux_registers shown;
};

/*
 One line for the operator.
 */
struct kyozon_report {
        /*
         `EVENT_*` of the event ring.
         */
        uint32_t kind;
        /*
         A number whose meaning depends on `kind`.
         */
        uint32_t code;
        /*
         Virtual address of the text, in the cokernel's memory.
         */
        uint64_t text;
        /*
         Bytes of text, at most [`REPORT_BYTES`].
         */
        uint64_t bytes;
};

/*
 Linux's readable memory. Each range can be read at [`WINDOW_BASE`](super::WINDOW_BASE) plus its physical address.
 */
struct kyozon_window {
        /*
         Number of valid entries in `ram`.
         */
        uint64_t count;
        /*
         System RAM, and what Linux may add to it, in ascending order.
         */
        struct kyozon_range ram[KYOZON_MAX_RANGES];
};

/*
 A write of Linux's that the hypervisor has watched. It has taken effect.
 */
struct kyozon_write {
        /*
         `WRITE_*`.
         */
        uint32_t kind;
        /*
         Linux's logical number of the CPU.
         */
        uint32_t cpu;
        /*
         Physical address of the words, a multiple of 8; or the number of the register, `TABLE_*` for tables.
         */
        uint64_t address;
        /*
         The words before the write. A change of more than these words has further entries. For a register, the first
         word counts.
         */
        uint64_t before[KYOZON_WRITE_WORDS];
        /*
         The words after the write.
         */
        uint64_t after[KYOZON_WRITE_WORDS];
        /*
         The instruction that wrote.
         */
        uint64_t rip;
        /*
         CR3 of the CPU.
         */
        uint64_t cr3;
};

/*
 Watched writes, the oldest first.
 */
struct kyozon_writes {
        /*
         Number of valid entries in `writes`. If it is [`MAX_WRITES`], there may be more.
         */
        uint64_t count;
        /*
         Number of writes since the start that nobody fetched in time.
         */
        uint64_t lost;
        /*
         The writes.
         */
        struct kyozon_write writes[KYOZON_MAX_WRITES];
};

/*
 One word of a repair.
 */
struct kyozon_repair_word {
        /*
         Physical address in Linux's System RAM, a multiple of 8.
         */
        uint64_t address;
        /*
         The value that memory must hold; if any word differs, the layer writes none.
         */
        uint64_t expected;
        /*
         The value to write.
         */
        uint64_t value;
};

/*
 A repair transaction: the layer writes all words or none.
 */
struct kyozon_repair_request {
        /*
         Number of valid entries in `words`, 1..=16.
         */
        uint64_t count;
        /*
         The words, each with another address.
         */
        struct kyozon_repair_word words[KYOZON_MAX_REPAIR_WORDS];
};

/*
 One image, in the caller's memory.
 */
struct kyozon_image {
        /*
         Virtual address in the calling process.
         */
        uint64_t address;
        /*
         Bytes.
         */
        uint64_t bytes;
};

/*
 What to load. If the request fails, nothing has changed and `message` explains why in one line.
 */
struct kyozon_load {
        /*
         [`DEVICE_VERSION`].
         */
        uint32_t version;
        /*
         [`MODE_NONE`](crate::layer::MODE_NONE) or [`MODE_VMM`](crate::layer::MODE_VMM).
         */
        uint32_t mode;
        /*
         Ticks per second, 1..=2000.
         */
        uint32_t tick_hz;
        /*
         Microseconds that one trip may take, that is how long it may interrupt Linux.
         */
        uint32_t budget_us;
        /*
         Linux's logical number of the cokernel's CPU.
         */
        uint32_t cpu;
        /*
         `TICK_*`.
         */
        uint32_t tick_source;
        /*
         `LOAD_*`.
         */
        uint32_t flags;
        /*
         I/O port of the cokernel's serial line, 0 for none.
         */
        uint32_t serial_port;
        /*
         Bytes of memory for the cokernel, in addition to its images.
         */
        uint64_t memory_bytes;
        /*
         Number of valid entries in `images`.
         */
        uint64_t image_count;
        /*
         The images: 0 is the layer, 1 the cokernel, the others are tasks.
         */
        struct kyozon_image images[KYOZON_MAX_IMAGES];
        /*
         Out: why the request failed, a C string.
         */
        uint8_t message[KYOZON_MESSAGE_BYTES];
        /*
         The operator's parameter, for the cokernel's boot block.
         */
        uint64_t parameter;
        /*
         The operator's data for the cokernel, 0 bytes for none. It is not hashed; the cokernel has to check it.
         */
        struct kyozon_image data;
        /*
         The hypervisor's image for mode vmm, 0 bytes for none.
         */
        struct kyozon_image hypervisor;
        /*
         Mode vmm: the operator's key, [`KEY_BYTES_MIN`] to [`KEY_BYTES_MAX`] bytes, without which the wall does not
         open; or 0 bytes: then the module makes a key and keeps it in its memory. The module wipes its copies.
         */
        struct kyozon_image key;
};

/*
 A request to unload. If it fails, nothing has changed. Errors: `ENOKEY`, the load had a key and this has none;
 `EKEYREJECTED`, the key is another; `ENODEV`, nothing is loaded.
 */
struct kyozon_unload {
        /*
         [`DEVICE_VERSION`].
         */
        uint32_t version;
        /*
         Zero.
         */
        uint32_t reserved;
        /*
         The key of the load, 0 bytes for none.
         */
        struct kyozon_image key;
};

/*
 What is loaded, and its overhead.
 */
struct kyozon_status {
        /*
         [`DEVICE_VERSION`].
         */
        uint32_t version;
        /*
         `STATE_*`.
         */
        uint32_t state;
        /*
         The same as in [`Load`].
         */
        uint32_t mode;
        /*
         The same as in [`Load`].
         */
        uint32_t tick_hz;
        /*
         The same as in [`Load`].
         */
        uint32_t budget_us;
        /*
         The same as in [`Load`].
         */
        uint32_t cpu;
        /*
         `TICK_*`: the source that probing found.
         */
        uint32_t tick_source;
        /*
         Mode vmm: 1 if an unload needs the operator's key.
         */
        uint32_t locked;
        /*
         Ticks delivered to the cokernel.
         */
        uint64_t ticks;
        /*
         Ticks that were not delivered one by one: a later event counted them.
         */
        uint64_t missed;
        /*
         Number of times that the cokernel was cut off.
         */
        uint64_t overruns;
        /*
         Longest trip, in nanoseconds.
         */
        uint64_t longest_ns;
        /*
         99th percentile of the duration of trips in nanoseconds, rounded up to a power of two of time-stamp counter
         ticks.
         */
        uint64_t p99_ns;
        /*
         Bytes taken from Linux.
         */
        uint64_t reserve_bytes;
        /*
         Bytes of the event ring, which `/dev/kyozon` offers for a read-only `mmap` at offset 0.
         */
        uint64_t events_bytes;
        /*
         Pieces of Linux's state that a trip changed and did not restore; counted if the module's `check` is set.
         */
        uint64_t differences;
        /*
         Why the cokernel was stopped, a C string.
         */
        uint8_t message[232];
        /*
         Mode vmm: exits of Linux to the hypervisor on all CPUs, indexed by `vmm::EXIT_*`.
         */
        uint64_t exits[KYOZON_EXIT_REASONS];
        /*
         Mode vmm: attempts of Linux that nested paging, the wall, stopped.
         */
        uint64_t wall_findings;
        /*
         Mode vmm: bytes of nested page tables.
         */
        uint64_t nested_bytes;
        /*
         Mode vmm: `IOMMU_*`.
         */
        uint32_t iommu;
        /*
         Zero.
         */
        uint32_t reserved2;
};

/*
 What a check has done so far.
 */
struct kyozon_check_status {
        /*
         Name, UTF-8, padded with zeros; empty if the check does not exist.
         */
        uint8_t name[32];
        /*
         Odd while the writer changes the other fields: a reader reads again.
         */
        uint64_t sequence;
        /*
         Number of complete passes.
         */
        uint64_t passes;
        /*
         Number of findings that were reported.
         */
        uint64_t findings;
        /*
         Number of findings that were repaired.
         */
        uint64_t repairs;
        /*
         Number of times that the check was postponed because Linux was changing what it reads.
         */
        uint64_t retries;
        /*
         CPU time of the last complete pass, in time-stamp counter ticks.
         */
        uint64_t pass_tsc;
        /*
         CPU time of all passes, in time-stamp counter ticks.
         */
        uint64_t total_tsc;
        /*
         Time-stamp counter at the end of the last complete pass.
         */
        uint64_t last_tsc;
        /*
         Number of items (tasks, pages) that the last complete pass read.
         */
        uint64_t items;
        /*
         `CHECK_*`.
         */
        uint64_t state;
        /*
         Time-stamp counter ticks from the begin to the end of the last complete pass, with the time of all other code.
         */
        uint64_t wall_tsc;
        /*
         Bytes of an item; 0 if an item is not memory.
         */
        uint64_t item_bytes;
        /*
         Number of findings that are open: reported, and neither repaired nor gone.
         */
        uint64_t open;
        /*
         Number of reported findings that the table of open findings had no room for.
         */
        uint64_t unlisted;
        /*
         Number of items that the last complete pass had to leave out.
         */
        uint64_t unjudged;
        /*
         Number of times that a pass began again because Linux had changed what it walked.
         */
        uint64_t restarts;
        /*
         Number of suspects that were dropped for want of room, or because they could not be resolved.
         */
        uint64_t dropped;
        /*
         Percentage of the first pass that is done; 100 once it is complete.
         */
        uint64_t learned;
        /*
         Zero.
         */
        uint64_t reserved[10];
};

/*
 The monitor as a whole. The monitor writes it; when the monitor ends, the microkernel does.
 */
struct kyozon_monitor_status {
        /*
         `MONITOR_*`.
         */
        uint64_t state;
        /*
         Time-stamp counter when the monitor last wrote this structure: its heartbeat.
         */
        uint64_t beat_tsc;
        /*
         Time-stamp counter ticks after the heartbeat from which on the monitor counts as stopped; 0 for never.
         */
        uint64_t patience_tsc;
        /*
         Number of times that the microkernel has started the monitor again.
         */
        uint64_t restarts;
        /*
         Odd while the writer changes the other fields: a reader reads again.
         */
        uint64_t sequence;
        /*
         Number of slices that the checks used up to their end.
         */
        uint64_t full_slices;
        /*
         Number of slices.
         */
        uint64_t slices;
        /*
         Length of a slice now, in time-stamp counter ticks.
         */
        uint64_t slice_tsc;
        /*
         Zero.
         */
        uint64_t reserved[8];
        /*
         Why the monitor ended, UTF-8, padded with zeros.
         */
        uint8_t reason[KYOZON_REASON_BYTES];
};

/*
 Start of the ring's memory. The records follow at byte [`RECORDS_OFFSET`].
 */
struct kyozon_event_ring {
        /*
         [`EVENTS_VERSION`]; 0 once the cokernel is unloaded, because a reader's mapping outlives the cokernel.
         */
        uint32_t version;
        /*
         Number of records in the ring, a power of two.
         */
        uint32_t records;
        /*
         Sequence number of the next record to be written: record `n` lies in slot `n % records`.
         */
        uint64_t next;
        /*
         Time-stamp counter ticks per millisecond.
         */
        uint64_t tsc_khz;
        /*
         Time-stamp counter when the ring was created, just before the cokernel's first tick.
         */
        uint64_t loaded_tsc;
        /*
         Zero.
         */
        uint64_t reserved[4];
        /*
         Status of the monitor's checks.
         */
        struct kyozon_check_status checks[KYOZON_MAX_CHECKS];
        /*
         Status of the monitor: the status with index [`MONITOR_INDEX`].
         */
        struct kyozon_monitor_status monitor;
};

/*
 One event. Its text is one line of UTF-8.
 */
struct kyozon_event_record {
        /*
         Number of this record, from 0. It is written last: a reader that finds a number it does not expect reads again.
         */
        uint64_t sequence;
        /*
         Time-stamp counter when the record was written.
         */
        uint64_t tsc;
        /*
         Number of the tick during which it was written.
         */
        uint64_t tick;
        /*
         `EVENT_*`.
         */
        uint32_t kind;
        /*
         A number whose meaning depends on `kind`: the vector of a fault. Of the monitor's lines: the index of the check
         in bits 0 to 7, and above them one more than the number of the finding's class, or 0.
         */
        uint32_t code;
        /*
         Number of valid bytes in `text`.
         */
        uint32_t text_bytes;
        /*
         1 if the text continues in the next record, else 0.
         */
        uint32_t continues;
        /*
         The line, without a line feed.
         */
        uint8_t text[KYOZON_EVENT_TEXT_BYTES];
};

/*
 A piece of the guest's address space.
 */
struct kyozon_area {
        /*
         First virtual address.
         */
        uint64_t base;
        /*
         Bytes.
         */
        uint64_t bytes;
};

/*
 A named piece of memory that several peers see at the same address.
 */
struct kyozon_shared_region {
        /*
         Name, padded with zeros.
         */
        uint8_t name[KYOZON_REGION_NAME_BYTES];
        /*
         Virtual address of the header, the same in every guest.
         */
        uint64_t address;
        /*
         Bytes including the header, a multiple of 4096.
         */
        uint64_t bytes;
        /*
         `REGION_*`.
         */
        uint32_t rights;
        /*
         Number of times that a region was created under this name.
         */
        uint32_t generation;
        /*
         Number of the region, for calls.
         */
        uint64_t number;
};

/*
 The information that a guest gets at its first instruction. It lies in a page that the guest can only read.
 */
struct kyozon_guest_boot {
        /*
         [`BOOT_MAGIC`].
         */
        uint64_t magic;
        /*
         [`UNIKERNEL_VERSION`](super::UNIKERNEL_VERSION).
         */
        uint32_t version;
        /*
         `BACKEND_*`. A guest SHOULD NOT depend on it.
         */
        uint32_t backend;
        /*
         `FEATURE_*`. A guest ignores unknown bits.
         */
        uint64_t features;
        /*
         Number of this peer in its group.
         */
        uint32_t peer;
        /*
         Number of peers in the group when this guest starts; their numbers are 0..`peers`. If other commands can join
         the group, some of them may be gone and others may follow: a region's header shows their states.
         */
        uint32_t peers;
        /*
         `extern "C" fn()`: carries out the call in the call block.
         */
        uint64_t hypercall;
        /*
         `extern "C" fn(number: u32)`: gives a peer its token or, from [`QUEUE_DOORBELL`](super::QUEUE_DOORBELL) on,
         announces entries in a queue to its device. A number without a peer or queue has no effect.
         */
        uint64_t doorbell;
        /*
         Address of this peer's [`CallBlock`](super::CallBlock).
         */
        uint64_t call;
        /*
         The `fs` base at the first instruction.
         */
        uint64_t thread;
        /*
         From the first page of the image to the end of its last.
         */
        struct kyozon_area image;
        /*
         The stack. The pages directly below and above are not mapped.
         */
        struct kyozon_area stack;
        /*
         Thread-local data and the word after it.
         */
        struct kyozon_area tls;
        /*
         The heap, zero at the start.
         */
        struct kyozon_area heap;
        /*
         Time-stamp counter ticks per millisecond.
         */
        uint64_t tsc_khz;
        /*
         Difference, modulo 2^64, to add to the counter that the guest reads to get the host's counter.
         */
        uint64_t tsc_offset;
        /*
         The host's counter at the moment when the group's clock showed `clock_ns`.
         */
        uint64_t clock_tsc;
        /*
         The group's clock at `clock_tsc`, in nanoseconds.
         */
        uint64_t clock_ns;
        /*
         Nanoseconds per tick of the counter, times 2^32.
         */
        uint64_t clock_scale;
        /*
         The arguments, and then the environment: strings, each with a zero byte at its end, one after the other.
         */
        struct kyozon_area arguments;
        /*
         Number of arguments.
         */
        uint64_t argument_count;
        /*
         Number of valid entries in `regions`.
         */
        uint64_t region_count;
        /*
         Regions that are mapped at the start.
         */
        struct kyozon_shared_region regions[KYOZON_MAX_REGIONS];
        /*
         The argument of [`ASK_SPAWN`](super::ASK_SPAWN); 0 in an initial guest.
         */
        uint64_t argument;
        /*
         Address of [`MAX_PEERS`](super::MAX_PEERS) entries of type [`RegionPeer`](super::RegionPeer), by number, which
         the guest can only read: the states of the group's peers. [`PEER_ABSENT`](super::PEER_ABSENT) with generation 0
         is a number that no peer has had.

         The table shows all peers of the group, also those of other commands and host programs. A region's header shows
         who has mapped it, with generations of its own: there each arrival counts.

         A word of 32 bits follows the table: how many of its peers became [`PEER_DEAD`](super::PEER_DEAD) so far, modulo
         2^32. It changes before the other peers get their tokens. A peer that died may have left a sign that it waits
         for something, and the next peer with its number cannot be told from it.
         */
        uint64_t peer_table;
        /*
         Generation of this peer in the table; the first peer of a number has 1.
         */
        uint32_t generation;
        /*
         Maximum number of peers that the group can have at once. Their numbers are any below
         [`MAX_PEERS`](super::MAX_PEERS).
         */
        uint32_t limit;
        /*
         The program, from its first page to the end of its last; empty without one.
         */
        struct kyozon_area program;
        /*
         Address of the program's first instruction; 0 without one.
         */
        uint64_t program_entry;
        /*
         Number of the host's CPUs that the group may use, at least 1.
         */
        uint32_t cpus;
        /*
         Number of strings of the environment, which follow the arguments in the same area.
         */
        uint32_t environment_count;
};

/*
 One call and its result.
 */
struct kyozon_call_block {
        /*
         `ASK_*`.
         */
        uint64_t number;
        /*
         Arguments, in the order in which the calls name them.
         */
        uint64_t arguments[6];
        /*
         0 or more, or `ERROR_*`.
         */
        int64_t result;
};

/*
 The state of one peer in a region's header. The tender changes each word by an atomic store.
 */
struct kyozon_region_peer {
        /*
         `PEER_*`.
         */
        uint32_t state;
        /*
         Number of peers that have had this number, so that a successor is not mistaken for its predecessor.
         */
        uint32_t generation;
};

/*
 The first page of a region.
 */
struct kyozon_region_header {
        /*
         [`REGION_MAGIC`].
         */
        uint64_t magic;
        /*
         [`UNIKERNEL_VERSION`](super::UNIKERNEL_VERSION).
         */
        uint32_t version;
        /*
         The same as in [`SharedRegion`].
         */
        uint32_t generation;
        /*
         The same as in [`SharedRegion`].
         */
        uint8_t name[KYOZON_REGION_NAME_BYTES];
        /*
         The same as in [`SharedRegion`].
         */
        uint64_t address;
        /*
         The same as in [`SharedRegion`].
         */
        uint64_t bytes;
        /*
         The peers, by number.
         */
        struct kyozon_region_peer peers[KYOZON_MAX_PEERS];
        /*
         Zero.
         */
        uint64_t reserved[440];
};

/*
 Description of a device.
 */
struct kyozon_device_info {
        /*
         Name, padded with zeros.
         */
        uint8_t name[KYOZON_DEVICE_NAME_BYTES];
        /*
         `DEVICE_*`: the device IDs of section 5.
         */
        uint32_t kind;
        /*
         Number of queues.
         */
        uint32_t queues;
        /*
         Feature bits of the device's section and of section 6.
         */
        uint64_t features;
        /*
         Doorbell number of the first queue, for [`GuestBoot::doorbell`](super::GuestBoot::doorbell); those of the other
         queues follow.
         */
        uint32_t doorbell;
        /*
         Maximum number of entries of a queue.
         */
        uint32_t max_size;
        /*
         Number of valid bytes in `config`.
         */
        uint64_t config_bytes;
        /*
         The configuration space.
         */
        uint8_t config[KYOZON_DEVICE_CONFIG_BYTES];
};

/*
 The tick's HPET timer, as the module claimed it.
 */
struct kyozon_host_timer {
        /*
         Physical address of the HPET's registers.
         */
        uint64_t registers;
        /*
         Configuration register of both timers, with interrupts disabled.
         */
        uint32_t config;
        /*
         Number of the timer that guards the budget. It is 2, the tick's own timer, if there is no other.
         */
        uint32_t guard;
        /*
         The interrupt message (MSI): data and address.
         */
        uint32_t message[2];
        /*
         Physical address of the IO-APIC that delivers the tick, 0 if messages deliver it.
         */
        uint64_t ioapic;
        /*
         Pin of the IO-APIC.
         */
        uint32_t pin;
        /*
         Femtoseconds per tick of the main counter.
         */
        uint32_t period_fs;
};

/*
 Where Linux keeps the name of the running task.
 */
struct kyozon_host_names {
        /*
         Offset from Linux's GS base of the pointer to the running task's `task_struct`.
         */
        uint64_t current_task;
        /*
         Offset of the pid in `task_struct`.
         */
        uint64_t pid;
        /*
         Offset of the name, 16 bytes, in `task_struct`.
         */
        uint64_t comm;
};

/*
 The IOMMUs that Linux does not use, so that the hypervisor can.
 */
struct kyozon_host_iommu {
        /*
         Physical addresses of their registers, page-aligned. 0 follows the last.
         */
        uint64_t registers[KYOZON_HOST_MAX_IOMMUS];
        /*
         Physical address of the device table that all of them share: contiguous zeroed pages.
         */
        uint64_t devices;
        /*
         Bytes of the device table.
         */
        uint64_t devices_bytes;
        /*
         Physical address of contiguous zeroed pages, two for each IOMMU: its commands and its events.
         */
        uint64_t buffers;
        /*
         Physical address of an empty device table of the same size. Linux keeps its memory and never frees it, because
         QEMU's IOMMU reads its table even when it is off.
         */
        uint64_t idle;
};

/*
 The module's description of the machine for the hypervisor. It lies in the hypervisor's own memory.
 */
struct kyozon_host_entry {
        /*
         [`VMM_VERSION`].
         */
        uint32_t version;
        /*
         From the module, on each entry: `HOST_LAUNCH` or `HOST_LEAVE`.
         */
        uint32_t operation;
        /*
         From the module, on each entry: index of this CPU in `apic_ids`.
         */
        uint32_t cpu;
        /*
         From the hypervisor: `HOST_DONE` or `HOST_REFUSED`.
         */
        uint32_t result;
        /*
         Number of CPUs.
         */
        uint32_t cpu_count;
        /*
         Index of the cokernel's CPU.
         */
        uint32_t cokernel_cpu;
        /*
         Levels of the page tables of the hypervisor's world: 4 or 5.
         */
        uint32_t paging_levels;
        /*
         Highest level at which a page-table entry can map a page: 3 if the CPU has pages of 1 GiB, else 2.
         */
        uint32_t largest_leaf;
        /*
         Number of bits of a physical address.
         */
        uint32_t physical_bits;
        /*
         Ticks per second.
         */
        uint32_t tick_hz;
        /*
         Microseconds that one trip may take.
         */
        uint32_t budget_us;
        /*
         I/O port of the serial line for events and reports, 0 for none.
         */
        uint32_t serial_port;
        /*
         Time-stamp counter ticks per millisecond.
         */
        uint64_t tsc_khz;
        /*
         CR3 of the cokernel's guest.
         */
        uint64_t guest_page_table;
        /*
         Virtual address of the cokernel guest's first instruction in each trip.
         */
        uint64_t guest_entry;
        /*
         RDI at `guest_entry`.
         */
        uint64_t guest_argument;
        /*
         RSI at `guest_entry`.
         */
        uint64_t guest_trip;
        /*
         RSP at `guest_entry`. The word there is `guest_exit`, the return address.
         */
        uint64_t guest_stack;
        /*
         Virtual address of the code by which the cokernel's guest calls the hypervisor to end a trip.
         */
        uint64_t guest_exit;
        /*
         Virtual address of the guest's global descriptor table.
         */
        uint64_t guest_gdt;
        /*
         Virtual address of the guest's interrupt descriptor table.
         */
        uint64_t guest_idt;
        /*
         Virtual address of the guest's task state segment.
         */
        uint64_t guest_tss;
        /*
         Physical address of the page that starts with the [`Trip`](crate::layer::Trip).
         */
        uint64_t trip;
        /*
         Physical address of the [`Mailbox`].
         */
        uint64_t mailbox;
        /*
         Physical address of the [`HostStatus`], which Linux may read.
         */
        uint64_t status;
        /*
         Virtual address of the event ring.
         */
        uint64_t events;
        /*
         Bytes of the event ring.
         */
        uint64_t events_bytes;
        /*
         Physical address of ten contiguous pages: the cokernel's I/O permission map, the two MSR permission maps, and
         Linux's I/O permission map.
         */
        uint64_t permissions;
        /*
         Physical address of the local APIC's registers. The window maps them.
         */
        uint64_t local_apic;
        /*
         From the module: 128 random bits, without which nobody can open the wall, start or stop the ticks.
         */
        uint64_t key[2];
        /*
         The tick's timer.
         */
        struct kyozon_host_timer timer;
        /*
         Where Linux keeps the names of its tasks.
         */
        struct kyozon_host_names names;
        /*
         The IOMMUs.
         */
        struct kyozon_host_iommu iommu;
        /*
         Number of valid entries in `ram`.
         */
        uint32_t ram_count;
        /*
         Number of valid entries in `guest`.
         */
        uint32_t guest_count;
        /*
         Number of valid entries in `host`.
         */
        uint32_t host_count;
        /*
         Number of valid entries in `read_only`.
         */
        uint32_t read_only_count;
        /*
         Number of valid entries in `pool`.
         */
        uint32_t pool_count;
        /*
         1 to compare Linux's state before and after every trip, for tests.
         */
        uint32_t check;
        /*
         The I/O ports of ACPI's control registers PM1a and PM1b, 0 for none. A bit in them puts the machine to sleep.
         */
        uint32_t sleep_ports[2];
        /*
         The sleep type that switches the machine off, for each of them; [`SLEEP_UNKNOWN`] if there is none.
         */
        uint32_t off_types[2];
        /*
         System RAM of the machine without the reserve, and what Linux may add to it, in ascending order.
         */
        struct kyozon_range ram[KYOZON_MAX_RANGES];
        /*
         The part of the reserve that belongs to the cokernel.
         */
        struct kyozon_range guest[KYOZON_MAX_RANGES];
        /*
         The part of the reserve that belongs to the hypervisor.
         */
        struct kyozon_range host[KYOZON_MAX_RANGES];
        /*
         The part of Linux's memory that Linux may only read: the event ring and the status.
         */
        struct kyozon_range read_only[KYOZON_MAX_RANGES];
        /*
         The free pages in `host`.
         */
        struct kyozon_range pool[KYOZON_MAX_RANGES];
        /*
         Local APIC IDs of the CPUs.
         */
        uint32_t apic_ids[KYOZON_HOST_MAX_CPUS];
};

/*
 The hypervisor's status. Linux can only read it.
 */
struct kyozon_host_status {
        /*
         [`VMM_VERSION`].
         */
        uint32_t version;
        /*
         [`STATE_RUNNING`](crate::device::STATE_RUNNING) or [`STATE_STOPPED`](crate::device::STATE_STOPPED).
         */
        uint32_t state;
        /*
         Ticks delivered.
         */
        uint64_t ticks;
        /*
         Ticks that were not delivered one by one: a later event counted them.
         */
        uint64_t missed;
        /*
         Number of times that the cokernel was cut off.
         */
        uint64_t overruns;
        /*
         Longest trip, in time-stamp counter ticks.
         */
        uint64_t longest_tsc;
        /*
         Time-stamp counter at which the next tick is due.
         */
        uint64_t due_tsc;
        /*
         Bytes of nested page tables.
         */
        uint64_t nested_bytes;
        /*
         Attempts of Linux that nested paging, the wall, stopped and reported.
         */
        uint64_t findings;
        /*
         Words of Linux's state that trips changed, if [`HostEntry::check`] is set.
         */
        uint64_t differences;
        /*
         Bit `n`: the NMI that CPU `n` got last may not be Linux's. The hypervisor writes it when it injects the NMI, so
         it is exact for as long as the handler runs.
         */
        uint64_t doubtful_nmis;
        /*
         Not 0 once the cokernel asks Linux to start its crash kernel. The cokernel's CPU gets an NMI for it.
         */
        uint64_t crash;
        /*
         Exits of Linux on all CPUs, indexed by `EXIT_*`.
         */
        uint64_t exits[KYOZON_EXIT_REASONS];
        /*
         Entry `n`: number of trips that took 2^n to 2^(n+1) time-stamp counter ticks.
         */
        uint64_t histogram[64];
        /*
         Why the cokernel was stopped.
         */
        struct kyozon_fault fault;
};

/*
 A page that the layer in the cokernel's guest shares with the hypervisor.
 */
struct kyozon_mailbox {
        /*
         The same as in [`layer::Report`](crate::layer::Report).
         */
        uint32_t kind;
        /*
         The same as in [`layer::Report`](crate::layer::Report).
         */
        uint32_t code;
        /*
         Number of valid bytes in `text`.
         */
        uint64_t bytes;
        /*
         The line.
         */
        uint8_t text[KYOZON_MAILBOX_BYTES];
        /*
         The words of a status of the event ring.
         */
        uint64_t status[KYOZON_STATUS_WORDS];
        /*
         From the hypervisor: Linux's registers.
         */
        struct kyozon_linux_registers registers;
        /*
         From the hypervisor: watched writes.
         */
        struct kyozon_writes writes;
};

/*
 What the host offers. Function members are addresses.
 */
struct kyozon_library_host {
        /*
         [`LIBRARY_VERSION`].
         */
        uint32_t version;
        /*
         Zero.
         */
        uint32_t reserved;
        /*
         The kernel's memory, aligned to [`LIBRARY_MEMORY_ALIGN`]. It begins with the image; the rest is zero.
         */
        uint64_t memory;
        /*
         Bytes of the kernel's memory, a multiple of [`LIBRARY_MEMORY_ALIGN`].
         */
        uint64_t memory_bytes;
        /*
         Linux's command line, a string that ends with a zero.
         */
        uint64_t command_line;
        /*
         The first argument of each function below.
         */
        uint64_t context;
        /*
         `u64 now(context)`: nanoseconds that never go back.
         */
        uint64_t now;
        /*
         `u64 realtime(context)`: nanoseconds since 1970.
         */
        uint64_t realtime;
        /*
         `void print(context, const char *text, u64 bytes)`: text of the kernel's log.
         */
        uint64_t print;
        /*
         `void park(context, u32 *word, u32 value, u64 deadline)`: waits while `*word` is `value`, until `unpark` or the
         deadline, on the clock of `now`. It may return early.
         */
        uint64_t park;
        /*
         `void unpark(context, u32 *word, u32 count)`: wakes up to `count` threads that wait on `word`.
         */
        uint64_t unpark;
        /*
         `void wait(context, u32 *word, u32 value, u64 deadline)`: as `park`, for a thread that waits for the end of its
         request. It may call `interrupt` meanwhile, and so complete the request itself.
         */
        uint64_t wait;
        /*
         `u64 mmio_read(context, u64 address, u32 bytes)`: reads a device register.
         */
        uint64_t mmio_read;
        /*
         `void mmio_write(context, u64 address, u32 bytes, u64 value)`: writes a device register.
         */
        uint64_t mmio_write;
        /*
         `i64 barrier(context)`: a full memory barrier on every running thread that calls the kernel; 0, or an error if
         the host has none.
         */
        uint64_t barrier;
        /*
         Random bytes.
         */
        uint8_t seed[32];
};

/*
 What the kernel offers. Function members are addresses.
 */
struct kyozon_library_kernel {
        /*
         [`LIBRARY_VERSION`].
         */
        uint32_t version;
        /*
         Zero.
         */
        uint32_t reserved;
        /*
         `i64 start(LibraryThread *)`: boots. The thread is not attached by this.
         */
        uint64_t start;
        /*
         `i64 call(LibraryThread *)`: performs the thread's request and waits until it is complete. `-ESHUTDOWN` after
         the kernel halted; `-EDEADLK` from a signal handler that interrupted a call of the same thread.
         */
        uint64_t call;
        /*
         `void service(LibraryThread *)`: keeps time while no other thread does, until the kernel halts. One host thread
         of its own runs it.
         */
        uint64_t service;
        /*
         `void interrupt(u32 line)`: raises an interrupt, from any host thread.
         */
        uint64_t interrupt;
        /*
         `u64 fixup(u64 ip)`: where to continue after a fault at `ip` on an address that a program passed, or 0 if the
         fault is the kernel's own.
         */
        uint64_t fixup;
        /*
         Address of a `u32`: 0 while the kernel runs, 1 after a power-off, 2 after a panic.
         */
        uint64_t halted;
};

/*
 A host thread, as the kernel knows it. The memory belongs to the host; it must not move while the thread is attached
 or in a call.
 */
struct kyozon_library_thread {
        /*
         The kernel's: the host thread's stack pointer while it is in the kernel.
         */
        uint64_t host_stack;
        /*
         The kernel's: the thread's task, 0 if it has none.
         */
        uint64_t task;
        /*
         The kernel's: where the task's stack begins.
         */
        uint64_t stack_top;
        /*
         The kernel's: the word that the host thread waits on.
         */
        uint32_t done;
        /*
         The kernel's: 1 between submission and start of a request.
         */
        uint32_t submitted;
        /*
         The request: one of the kinds above.
         */
        uint32_t kind;
        /*
         The kernel's: 1 while the thread is inside `call`.
         */
        uint32_t inside;
        /*
         The number of the system call.
         */
        uint64_t number;
        /*
         Its arguments.
         */
        uint64_t arguments[6];
        /*
         The result.
         */
        int64_t result;
        /*
         The kernel's: until when this thread waits on behalf of the timer.
         */
        uint64_t until;
        /*
         The kernel's: list of attached threads, and of those to attach.
         */
        uint64_t next;
        /*
         The kernel's: the same.
         */
        uint64_t previous;
        /*
         The kernel's: 1 while the thread is inside under the biased lock.
         */
        uint32_t busy;
        /*
         Zero.
         */
        uint32_t reserved;
};

/*
 What the checker says about an accepted program.
 */
struct kyozon_typed_contents {
        /*
         Number of functions.
         */
        uint32_t functions;
        /*
         Bytes of text.
         */
        uint32_t text_bytes;
        /*
         Bytes of annotations.
         */
        uint32_t annotation_bytes;
        /*
         Number of instructions that may fault.
         */
        uint32_t faults;
};

/*
 A program to check. If it is refused, the error is `ENOEXEC` and `message` has the broken rule; after another error
 `message` says what was wrong with the request.
 */
struct kyozon_typed_check {
        /*
         [`TYPED_VERSION`].
         */
        uint32_t version;
        /*
         Zero.
         */
        uint32_t flags;
        /*
         The program's file.
         */
        struct kyozon_image file;
        /*
         What an accepted program has.
         */
        struct kyozon_typed_contents contents;
        /*
         A C string.
         */
        uint8_t message[KYOZON_TYPED_MESSAGE_BYTES];
};

/*
 A program to check, as by [`TypedCheck`], and to load: it then belongs to this open device, in place of an earlier
 one, and can be run. The error is `ENOSPC` while other programs need the module's room for code.
 */
struct kyozon_typed_load {
        /*
         The program.
         */
        struct kyozon_typed_check check;
        /*
         For each number that an import has in the file, from 0 on, the number of the function that answers it; an array
         of u32. If the kernel has no such function, the process answers. Null: an import has the function's own
         number, and the kernel has it.
         */
        uint64_t imports;
        /*
         How many: at most `TYPED_OUTSIDE_GATES`.
         */
        uint64_t import_count;
};

/*
 Runs the program of an open device in kernel mode, in the caller's address space: its region is what is mapped from
 [`TYPED_REGION`] on, for [`TYPED_RESERVED`] bytes.

 `EINTR` says that the caller has a signal to handle, or other work on its way to user mode. The program keeps its
 state, and the same request continues it. `EBUSY`: another thread runs it.
 */
struct kyozon_typed_run {
        /*
         [`TYPED_VERSION`].
         */
        uint32_t version;
        /*
         Zero.
         */
        uint32_t flags;
        /*
         Arguments of the entry; of each, the part that its signature names. After `TYPED_CALLED`, those of the import;
         0 where its signature names none.
         */
        uint64_t arguments[6];
        /*
         Descriptors of the files that the program's handles 0, 1 and so on are for; -1 for none.
         */
        int32_t handles[KYOZON_TYPED_HANDLES];
        /*
         For each handle, what functions of WASI may do with it: a sum of `TYPED_MAY_READ` and so on.
         */
        uint32_t operations[KYOZON_TYPED_HANDLES];
        /*
         For functions of WASI: where the program's memory begins,
         */
        uint64_t memory;
        /*
         and its bytes, all of them within the region.
         */
        uint64_t memory_bytes;
        /*
         What the entry returned; after `TYPED_CALLED`, an error or 0. To go on after it: what the import returns.
         */
        uint64_t result;
        /*
         `TYPED_RETURNED` and so on.
         */
        uint32_t outcome;
        /*
         Offset in the text, or the number of an import.
         */
        uint32_t offset;
        /*
         A C string.
         */
        uint8_t message[KYOZON_TYPED_MESSAGE_BYTES];
};

/*
 Lets the program of this open device filter the packets that an interface receives, until the device is closed, or
 the interface is gone or in another namespace. The packets are queued until the program takes them; `poll` waits for
 one (`POLLIN`) or the end of the interface (`POLLHUP`). The numbers of packets are in `/proc/PID/fdinfo`.
 */
struct kyozon_typed_filter {
        /*
         [`TYPED_VERSION`].
         */
        uint32_t version;
        /*
         `TYPED_FULL_PASSES`, or 0.
         */
        uint32_t flags;
        /*
         The interface's index, in the network namespace of the caller.
         */
        uint32_t interface;
        /*
         Zero.
         */
        uint32_t reserved;
        /*
         A C string.
         */
        uint8_t message[KYOZON_TYPED_MESSAGE_BYTES];
};

/*
 A call of the checker. Addresses are the kernel's.
 */
struct kyozon_typed_checker {
        /*
         The file, which nothing else writes to.
         */
        uint64_t file;
        /*
         Its bytes.
         */
        uint64_t file_bytes;
        /*
         Memory for the checker, at a multiple of 8.
         */
        uint64_t memory;
        /*
         Its bytes.
         */
        uint64_t memory_bytes;
        /*
         Receives the offsets, in the text, of the instructions that may fault: 4 bytes each, sorted.
         */
        uint64_t faults;
        /*
         How many there is room for.
         */
        uint64_t fault_room;
        /*
         Receives a line, a C string.
         */
        uint64_t message;
        /*
         Its room.
         */
        uint64_t message_bytes;
        /*
         Sum of `TYPED_INDIRECT_BRANCHES`, `TYPED_TRACKING` and `TYPED_PANIC`.
         */
        uint32_t host;
        /*
         `TYPED_ACCEPTED` and so on.
         */
        uint32_t result;
        /*
         What an accepted program has.
         */
        struct kyozon_typed_contents contents;
        /*
         Bytes of the image of an accepted program.
         */
        uint32_t image_bytes;
        /*
         `TYPED_USES_VECTORS`, or 0.
         */
        uint32_t properties;
};

/*
 A function of the kernel that programs can import.
 */
struct kyozon_typed_gate {
        /*
         Where it begins.
         */
        uint64_t address;
        /*
         The number of such an import.
         */
        uint32_t number;
        /*
         Arguments in registers; each is a number, and so is the result.
         */
        uint32_t arguments;
};

/*
 Makes the image of a program that the checker accepted. Addresses are the kernel's.
 */
struct kyozon_typed_build {
        /*
         The file, the one that was accepted.
         */
        uint64_t file;
        /*
         Its bytes.
         */
        uint64_t file_bytes;
        /*
         Receives the image.
         */
        uint64_t image;
        /*
         Its room.
         */
        uint64_t image_bytes;
        /*
         Where the image will lie: a multiple of 64.
         */
        uint64_t address;
        /*
         An array of [`TypedGate`].
         */
        uint64_t gates;
        /*
         How many.
         */
        uint64_t gate_count;
        /*
         An array of the addresses of [`TYPED_THUNKS`] thunks.
         */
        uint64_t thunks;
        /*
         An array of u32, as [`TypedLoad::imports`]; null for none.
         */
        uint64_t imports;
        /*
         How many.
         */
        uint64_t import_count;
        /*
         An array of the addresses of [`TYPED_OUTSIDE_GATES`] gates for imports that the process answers.
         */
        uint64_t outside;
        /*
         Receives a line, a C string.
         */
        uint64_t message;
        /*
         Its room.
         */
        uint64_t message_bytes;
        /*
         As for the checker.
         */
        uint32_t host;
        /*
         `TYPED_ACCEPTED`, `TYPED_REFUSED` or `TYPED_PANICKED`.
         */
        uint32_t result;
        /*
         Offset of the entry.
         */
        uint32_t entry;
        /*
         `TYPED_HAS_RESULT`, or 0.
         */
        uint32_t properties;
        /*
         What the entry's arguments may be: 0 where nothing is passed.
         */
        uint64_t masks[6];
        /*
         Arguments, in registers, of each import that the process answers.
         */
        uint8_t outside_arguments[KYOZON_TYPED_OUTSIDE_GATES];
};

#endif  /* KYOZON_ABI_H */
