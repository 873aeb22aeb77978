//! Lines of every kind, the status of checks, and the loader's data.

use crate::layer::{idle, print, publish, report, tsc};
use kyozon_abi::events::{
    CheckStatus, EVENT_FAULT, EVENT_FINDING, EVENT_NOTE, EVENT_REPAIR, EVENT_TEXT_BYTES,
};
use kyozon_abi::layer::{BootBlock, Report};

fn line(kind: u32, code: u32, text: &[u8]) {
    let wanted = Report { kind, code, text: text.as_ptr() as u64, bytes: text.len() as u64 };
    if report(&wanted) != 0 {
        print(format_args!("test events: a report was refused"));
    }
}

/// Reports a line of every kind and publishes two checks: one counts passes, the other never finishes one.
pub fn every_kind() {
    line(EVENT_FINDING, 7, b"test events: a finding");
    line(EVENT_REPAIR, 7, b"test events: a repair");
    line(EVENT_FAULT, 13, b"test events: a fault \x1b[31m\r\n");
    line(EVENT_NOTE, 0, &[b'x'; EVENT_TEXT_BYTES + 4]);
    publish(5, &CheckStatus::named("never-done").to_words());
    let mut status = CheckStatus::named("count");
    loop {
        let begin = tsc();
        status.passes += 1;
        status.findings = status.passes / 2;
        status.repairs = status.passes / 4;
        status.items = 3;
        status.last_tsc = tsc();
        status.pass_tsc = status.last_tsc - begin;
        status.total_tsc += status.pass_tsc;
        publish(0, &status.to_words());
        for _ in 0..50 {
            idle();
        }
        print(format_args!("test events: pass {}", status.passes));
    }
}

/// Reports the data's length, sum, and sum weighted by position, which identify the file.
pub fn data(boot: &BootBlock) {
    let bytes = boot.data.bytes as usize;
    let (mut sum, mut places) = (0u64, 0u64);
    if bytes > 0 {
        // SAFETY: the boot block describes a readable range.
        let all = unsafe { core::slice::from_raw_parts(boot.data.base as *const u8, bytes) };
        for (place, piece) in all.chunks(1 << 16).enumerate() {
            for (index, byte) in piece.iter().enumerate() {
                sum += u64::from(*byte);
                places += u64::from(*byte) * ((place << 16 | index) as u64 + 1);
            }
            idle();
        }
    }
    print(format_args!("test data: bytes {bytes} sum {sum} places {places}"));
}

/// Reports `lines` lines at once, again every tenth tick.
pub fn flood(lines: u64) {
    loop {
        for number in 0..lines {
            print(format_args!("test flood: {number}"));
        }
        for _ in 0..10 {
            idle();
        }
    }
}
