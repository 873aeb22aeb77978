//! Linux's writes to the registers of the HPET, some of whose timers belong to the cokernel.
//!
//! Reference: IA-PC HPET Specification 1.0a, 2.3. Registers have 8 bytes each and are written by 4 or 8, aligned.

use super::Verdict::{self, Changed, Pass, Refuse};

const PAGE: u32 = 4096;
const REGISTER: u32 = 8;
const CONFIG: u32 = 0x10;
const STATUS: u32 = 0x20;
const COUNTER: u32 = 0xf0;
const TIMERS: u32 = 0x100;
const TIMERS_END: u32 = TIMERS + 32 * TIMER;
const TIMER: u32 = 0x20;
/// Bytes of configuration, comparator and route. The rest up to the next timer is reserved.
const TIMER_USED: u32 = 0x18;
/// Where a timer's message goes: 4 bytes of data, 4 bytes of address.
const ROUTE: u32 = 0x10;
const ROUTE_ADDRESS: u32 = 0x14;
/// In a timer's configuration: it sends messages.
const MESSAGES: u64 = 1 << 14;

/// The counter runs, and timers interrupt.
const ENABLE: u64 = 1;
/// Timers 0 and 1 take the routes of PIT and RTC instead of their own.
const LEGACY: u64 = 1 << 1;
const LEGACY_TIMERS: u32 = 0b11;

/// The cokernel's part of the HPET.
#[derive(Clone, Copy, Debug)]
pub struct Ours {
    /// A bit for each timer.
    pub timers: u32,
}

/// Judges a write of `bytes` bytes, 1 to 8, at `offset` in the page of registers. `current` reads the register of 4
/// bytes at an offset.
pub fn write(
    ours: Ours,
    offset: u32,
    bytes: usize,
    value: u64,
    current: impl Fn(u32) -> u32,
) -> Verdict {
    if !matches!(bytes, 4 | 8) || !(offset as usize).is_multiple_of(bytes) || offset >= PAGE {
        return Refuse;
    }
    match offset {
        CONFIG => changed(value, config(ours, value, current)),
        // A one clears.
        STATUS => changed(value, value & !u64::from(ours.timers)),
        COUNTER.. if offset < COUNTER + REGISTER => Refuse,
        TIMERS..TIMERS_END => {
            let ours = ours.timers >> ((offset - TIMERS) / TIMER) & 1 != 0;
            match offset % TIMER {
                ..TIMER_USED if ours => Refuse,
                0 if value & MESSAGES != 0 && !leads_to_apics(current(offset + ROUTE_ADDRESS)) => {
                    Refuse
                }
                ROUTE if bytes == 8 && !leads_to_apics((value >> 32) as u32) => Refuse,
                ROUTE_ADDRESS if !leads_to_apics(value as u32) => Refuse,
                _ => Pass(value),
            }
        }
        // A chip may decode fewer bits of the address.
        TIMERS_END.. => Refuse,
        _ => Pass(value),
    }
}

/// Whether a message to `address` is an interrupt (AMD APM 2, 16.11.1). Any other is a write to memory, which no page
/// table stops.
fn leads_to_apics(address: u32) -> bool {
    address >> 20 == 0xfee
}

/// The first `count` timers' routes, as far as a timer of Linux sends messages elsewhere: the offset of the address,
/// and the value that it must get. Others are left as they are: `write` refuses messages to where they lead.
pub fn stray_routes(
    ours: Ours,
    count: u32,
    current: impl Fn(u32) -> u32,
) -> impl Iterator<Item = (u32, u32)> {
    let linuxs = (0..count.min(32)).filter(move |n| ours.timers >> n & 1 == 0);
    let timers = linuxs.map(|n| TIMERS + n * TIMER);
    let stray = move |timer: &u32| {
        u64::from(current(*timer)) & MESSAGES != 0
            && !leads_to_apics(current(timer + ROUTE_ADDRESS))
    };
    timers.filter(stray).map(|timer| (timer + ROUTE_ADDRESS, 0xfee0_0000))
}

/// The general configuration, changed so that the cokernel's timers continue unaffected.
fn config(ours: Ours, value: u64, current: impl Fn(u32) -> u32) -> u64 {
    let value = value | ENABLE;
    if ours.timers & LEGACY_TIMERS == 0 {
        return value;
    }
    value & !LEGACY | u64::from(current(CONFIG)) & LEGACY
}

fn changed(from: u64, to: u64) -> Verdict {
    if from == to {
        Pass(to)
    } else {
        Changed(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Ours = Ours { timers: 0b1100 };

    fn judge(offset: u32, bytes: usize, value: u64) -> Verdict {
        write(OURS, offset, bytes, value, |_| panic!("timers 2 and 3 do not need it"))
    }

    #[test]
    fn the_counter_cannot_be_stopped() {
        assert_eq!(judge(0x10, 4, 3), Pass(3));
        assert_eq!(judge(0x10, 4, 2), Changed(3));
        assert_eq!(judge(0x10, 8, 0), Changed(1));
        assert_eq!(judge(0x14, 4, 0), Pass(0), "reserved");
        for (offset, bytes) in [(0xf0, 4), (0xf4, 4), (0xf0, 8)] {
            assert_eq!(judge(offset, bytes, 0), Refuse);
        }
        assert_eq!(judge(0xf8, 4, 1), Pass(1));
        assert_eq!(judge(0xe8, 8, 1), Pass(1));
    }

    #[test]
    fn our_interrupts_are_not_acknowledged() {
        assert_eq!(judge(0x20, 4, 0b0011), Pass(0b0011));
        assert_eq!(judge(0x20, 4, 0b1111), Changed(0b0011));
        assert_eq!(judge(0x20, 8, 0b0100), Changed(0));
        assert_eq!(judge(0x24, 4, 0b1111), Pass(0b1111), "reserved");
    }

    #[test]
    fn our_timers_are_ours_and_others_linuxs() {
        for n in 0..32 {
            for at in (0..0x20).step_by(4) {
                let offset = 0x100 + 0x20 * n + at;
                let value = if at == 0x14 { 0xfee0_1000 } else { 0xfee0_0000_0000_0007 };
                let ours = (n == 2 || n == 3) && at < 0x18;
                let want = if ours { Refuse } else { Pass(value) };
                assert_eq!(judge(offset, 4, value), want, "{offset:#x}");
                if at % 8 == 0 {
                    assert_eq!(judge(offset, 8, value), want, "{offset:#x}, 8 bytes");
                }
            }
        }
        let all = Ours { timers: u32::MAX };
        assert_eq!(write(all, 0x4f0, 4, 0, |_| 0), Refuse, "the last timer that there can be");
        assert_eq!(write(all, 0x500, 4, 0, |_| 0), Refuse, "perhaps timer 0 again");
    }

    #[test]
    fn messages_go_to_apics_only() {
        for address in [0, 7, 0x1f40_0000, 0xfedf_ffff, 0xfef0_0000, u32::MAX] {
            assert_eq!(judge(0x134, 4, address.into()), Refuse, "{address:#x}");
            assert_eq!(judge(0x130, 8, u64::from(address) << 32 | 7), Refuse, "{address:#x}");
        }
        assert_eq!(judge(0x130, 4, 0x1f40_0000), Pass(0x1f40_0000), "the data");
        for (route, want) in [(0xfee0_3000, Pass(0x4004)), (0x1f40_0000, Refuse), (0, Refuse)] {
            let current = |at| if at == 0x134 { route } else { panic!("{at:#x}") };
            assert_eq!(write(OURS, 0x120, 4, 0x4004, current), want, "to {route:#x}");
            assert_eq!(write(OURS, 0x120, 8, 0x4004, current), want, "to {route:#x}");
            assert_eq!(write(OURS, 0x120, 4, 4, current), Pass(4), "without messages");
        }
    }

    #[test]
    fn only_routes_of_messages_elsewhere_are_turned() {
        let routes = [0xfee0_3000, 0x1f40_0000, 0, 0, 0x1f40_0000, 0];
        let configs = [0x4004, 0x4004, 0x4004, 0x4004, 0x8004, 0x4000];
        let current = |at: u32| {
            let timer = (at - 0x100) as usize / 0x20;
            if at.is_multiple_of(0x20) {
                configs[timer]
            } else {
                routes[timer]
            }
        };
        let stray: Vec<_> = stray_routes(OURS, 6, current).collect();
        assert_eq!(stray, [(0x134, 0xfee0_0000), (0x1b4, 0xfee0_0000)]);
        assert_eq!(stray_routes(OURS, 99, |_| 0x4000).count(), 30);
    }

    #[test]
    fn odd_writes_are_refused() {
        for offset in (0..0x1000).filter(|o| o % 4 != 0) {
            assert_eq!(judge(offset, 4, 0), Refuse);
        }
        for offset in [0x0c, 0x14, 0xec, 0xf4, 0x13c, 0x15c] {
            assert_eq!(judge(offset, 8, 0), Refuse, "straddles");
        }
        for bytes in [0, 1, 2, 3, 5, 6, 7, 9, 16] {
            assert_eq!(judge(0, bytes, 0), Refuse);
        }
        assert_eq!(judge(0x1000, 4, 0), Refuse, "not of the page");
        assert_eq!(judge(u32::MAX - 3, 4, 0), Refuse);
        assert_eq!(judge(0xffc, 4, 9), Refuse);
    }

    #[test]
    fn timers_0_and_1_keep_their_route() {
        let judge = |value, now: u32| {
            let read = |offset| if offset == 0x10 { now } else { panic!("another register") };
            write(Ours { timers: 0b10 }, 0x10, 4, value, read)
        };
        assert_eq!(judge(1, 1), Pass(1));
        assert_eq!(judge(3, 3), Pass(3));
        assert_eq!(judge(3, 1), Changed(1));
        assert_eq!(judge(0, 3), Changed(3));
    }
}
