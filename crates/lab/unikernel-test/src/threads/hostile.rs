//! Spawning with invalid arguments, and threads that start in the wrong place.

use super::ends::recurse;
use super::{wait, COUNT};
use alloc::{vec, vec::Vec};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use kyozon_abi::unikernel::*;
use kyozon_channel::park::{Life, Peers};
use kyozon_unikernel::vm::Vm;
use kyozon_unikernel::{boot, me, sleep};

/// Makes a hypercall. Returns its answer, or the error code.
fn ask(number: u64, arguments: &[u64]) -> Result<u64, i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    match crate::hostile::ask(number, all) {
        answer @ 0.. => Ok(answer as u64),
        error => Err(error),
    }
}

/// Invalid entries, stacks, bounds and names are refused.
pub fn arguments() {
    let boot = boot();
    let code = crate::run as *const () as u64;
    let data = &raw const COUNT as u64;
    let area = vec![0_u8; 128 << 10];
    let stack = (area.as_ptr() as u64).next_multiple_of(4096);
    let no_code =
        [0, 1, data, stack, boot.hypercall, boot.call, boot.image.base - 1, 1 << 47, u64::MAX];
    for entry in no_code {
        assert_eq!(ask(ASK_SPAWN, &[entry, 0, stack, 65536]), Err(ERROR_ADDRESS), "{entry:#x}");
    }
    let no_stacks = [
        (0, 65536),
        (1, 65536),
        (stack + 8, 65536),
        (stack, 0),
        (stack, 4096),
        (stack, 65536 + 1),
        (stack, u64::MAX),
        (stack, !4095),
        (stack, 1 << 63),
        (code & !4095, 65536),
        (boot.heap.base - 4096, 65536),
        (boot.heap.base + boot.heap.bytes - 4096, 8192),
        (boot.heap.base + boot.heap.bytes, 8192),
        (boot.tls.base, 8192),
        (GUEST_SYSTEM_BASE, 8192),
        (boot.call & !4095, 8192),
        (boot.regions[0].address + 4096, 65536),
        (!4095, 4096),
        (!4095, 8192),
    ];
    for (stack, bytes) in no_stacks {
        assert_eq!(
            ask(ASK_SPAWN, &[code, 0, stack, bytes]),
            Err(ERROR_ADDRESS),
            "{stack:#x} {bytes:#x}"
        );
    }
    for bound in [2, 64, 65, 1 << 32, 1 << 63, u64::MAX] {
        assert_eq!(ask(ASK_SPAWN, &[code, 0, stack, 65536, bound]), Err(ERROR_NAME), "{bound}");
    }
    assert_eq!(ask(ASK_SPAWN, &[code, 0, stack, 65536, 0, 1]), Err(ERROR_ARGUMENT));
    for number in [0, 1, 63, 64, u64::MAX] {
        for generation in [0, 2, 1 << 32, u64::MAX] {
            let name = Err(ERROR_NAME);
            assert_eq!(ask(ASK_END, &[number, generation]), name, "{number} {generation}");
        }
    }
    // A guest that was there at the start cannot be ended.
    assert_eq!(ask(ASK_END, &[me() as u64, 1]), Err(ERROR_RIGHT));
    // Without the library, any argument is passed on unchanged.
    static GOT: AtomicU64 = AtomicU64::new(0);
    extern "C" fn bare(boot: &'static GuestBoot, argument: u64) -> ! {
        let mut stack_pointer: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mov {}, rsp", out(reg) stack_pointer, options(nomem, nostack)) };
        assert!(
            stack_pointer < boot.stack.base + boot.stack.bytes && stack_pointer > boot.stack.base
        );
        assert_eq!(argument, boot.argument);
        GOT.store(argument, Ordering::Release);
        kyozon_unikernel::exit(0)
    }
    for argument in [0, 1, u64::MAX, 0x1234_0000_0000_0000] {
        let name = ask(ASK_SPAWN, &[bare as *const () as u64, argument, stack, 65536]).unwrap();
        let (number, generation) = (name & 63, name >> 32);
        wait("its end", || Vm.life(number as u8) == Life::Dead);
        assert_eq!(GOT.load(Ordering::Acquire), argument);
        assert_eq!(ask(ASK_END, &[number, generation]), Ok(0));
    }
}

/// A thread that starts in the middle of a function may crash; no other thread does.
pub fn wild_code() {
    let entry = crate::run as *const () as u64 + 1;
    let area = vec![0_u8; 128 << 10];
    let stack = (area.as_ptr() as u64).next_multiple_of(4096);
    core::mem::forget(area);
    let middle = entry + (0..64).find(|i| i % 7 == 3).unwrap_or(0);
    if let Ok(name) = ask(ASK_SPAWN, &[middle, u64::MAX, stack, 65536]) {
        sleep::sleep(Duration::from_millis(30));
        let _ = ask(ASK_END, &[name & 63, name >> 32]);
        wait("its end", || Vm.life((name & 63) as u8) == Life::Dead);
    }
}

/// Threads that share one stack are lost; no other thread is.
pub fn wild_stack() {
    let area = vec![0_u8; 64 << 10];
    let stack = (area.as_ptr() as u64).next_multiple_of(4096);
    core::mem::forget(area);
    extern "C" fn overflow() -> ! {
        recurse(1);
        kyozon_unikernel::exit(1)
    }
    let entry = overflow as *const () as u64;
    let names: Vec<_> =
        (0..3).map(|_| ask(ASK_SPAWN, &[entry, 0, stack, 32768]).unwrap()).collect();
    let alive = |name: u64| {
        Vm.alive(kyozon_channel::park::Peer::new(name as u8, (name >> 32) as u32).unwrap())
    };
    // The first crash comes by itself: an end that is asked for before would hide it.
    wait("a crash", || names.iter().any(|name| !alive(*name)));
    for name in names {
        wait("its end", || {
            let _ = ask(ASK_END, &[name & 63, name >> 32]);
            !alive(name)
        });
    }
}
