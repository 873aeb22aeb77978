//! Cases that crash, or try to. The guest may do anything to itself; the tests check that nothing else happens.

use crate::Case;
use core::arch::asm;
use kyozon_abi::unikernel::*;
use kyozon_unikernel::{boot, println, sleep};

pub const CASES: &[Case] = &[
    ("null-read", || read(0)),
    ("null-write", || write(0)),
    ("wild-read", || read(0x33_0000_0000)),
    ("non-canonical", || read(0x1234_0000_0000_0000)),
    ("host-half", || read(0xffff_8000_0000_0000)),
    ("host-text", || read(0x40_0000)),
    ("text-write", || write(crate::run as *const () as u64)),
    ("rodata-write", || write("constant".as_ptr() as u64)),
    ("boot-write", || write(kyozon_unikernel::boot_address())),
    ("door-write", || write(boot().hypercall)),
    ("arguments-write", || write(boot().arguments.base)),
    ("descriptors-read", || read(GUEST_SYSTEM_BASE + 0x7000)),
    ("task-state-write", || write(GUEST_SYSTEM_BASE + 0x9000)),
    ("tables-read", || read(GUEST_SYSTEM_BASE + 0x3_0000)),
    ("stack-guard-above", || read(boot().stack.base + boot().stack.bytes)),
    ("heap-end", || read(boot().heap.base + boot().heap.bytes)),
    ("header-write", header_write),
    ("region-write", region_write),
    ("data-jump", data_jump),
    ("stack-jump", stack_jump),
    ("stack-overflow", || println!("{}", overflow(1))),
    ("bad-stack", bad_stack),
    ("null-stack", null_stack),
    ("divide", divide),
    ("invalid", invalid),
    ("breakpoint", breakpoint),
    ("int-80", int_80),
    ("system-call", system_call),
    ("halt", halt),
    ("interrupts-off", interrupts_off),
    ("port-in", port_in),
    ("port-out", port_out),
    ("control-register", control_register),
    ("model-register", model_register),
    ("single-step", single_step),
    ("forged-fault", forged_fault),
    ("forged-frame", forged_frame),
    ("calls", calls),
    ("doorbell-storm", doorbell_storm),
    ("endless", endless),
    ("sleep-forever", sleep_forever),
    ("call-storm", call_storm),
];

fn read(address: u64) {
    // SAFETY: none: the tender must keep this from doing harm.
    let word = unsafe { (address as *const u64).read_volatile() };
    println!("read {word:#x}");
}

fn write(address: u64) {
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe { (address as *mut u64).write_volatile(0x6666) };
    println!("written");
}

fn header_write() {
    write(boot().regions[0].address + 8);
}

/// Writes to the read-only region.
fn region_write() {
    write(boot().regions[1].address + REGION_HEADER_BYTES);
}

/// `ret` instructions in data, which must not run.
static mut CODE: [u8; 16] = [0xc3; 16];

fn jump(to: u64) {
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe { core::mem::transmute::<usize, extern "C" fn()>(to as usize)() };
    println!("came back");
}

fn data_jump() {
    jump(&raw mut CODE as u64);
}

fn stack_jump() {
    let code = [0xc3_u8; 16];
    jump(code.as_ptr() as u64);
}

#[inline(never)]
#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let mut frame = [depth; 64];
    core::hint::black_box(&mut frame);
    overflow(depth + 1) + frame[7]
}

fn bad_stack() {
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe { asm!("mov rsp, {}", "push rax", in(reg) 0x1234_5678_u64, options(noreturn)) };
}

fn null_stack() {
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe { asm!("xor esp, esp", "ud2", options(noreturn)) };
}

/// Defines a case that runs an instruction that must not work, with values in `rax` and `rdx`.
macro_rules! instruction {
    ($name:ident, $rax:literal, $rdx:literal, $($line:literal),+) => {
        fn $name() {
            // SAFETY: none: the tender must keep this from doing harm.
            unsafe {
                asm!(
                    $($line),+,
                    inlateout("rax") $rax as u64 => _,
                    inlateout("rdx") $rdx as u64 => _,
                    out("rcx") _,
                    out("rdi") _,
                    out("r11") _,
                )
            };
            println!("it worked");
        }
    };
}

instruction!(divide, 1, 0, "xor edi, edi", "div edi");
instruction!(invalid, 0, 0, "ud2");
instruction!(breakpoint, 0, 0, "int3");
instruction!(int_80, 20, 0, "int 0x80");
instruction!(system_call, 39, 0, "syscall");
instruction!(halt, 0, 0, "hlt");
instruction!(port_in, 0, 0x3f8, "in eax, dx");
instruction!(port_out, 0, 0x3f8, "out dx, eax");
instruction!(control_register, 0, 0, "mov cr3, rax");
instruction!(model_register, 0, 0, "mov ecx, 0xc0000080", "rdmsr");
instruction!(single_step, 0, 0, "pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop");

/// Some processors allow this, some do not. In both cases the guest stays under control.
fn interrupts_off() {
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe { asm!("cli") };
    endless();
}

/// Reports an exception that did not happen.
fn forged_fault() {
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe { asm!("out 14, al") };
    println!("it worked");
}

/// The same, with a matching frame where the tender reads one.
fn forged_frame() {
    let top = GUEST_SYSTEM_BASE + 0x6000;
    // SAFETY: none: the tender must keep this from doing harm.
    unsafe {
        asm!(
            "mov rsp, {top}",
            "push -1",
            "push -1",
            "push -1",
            "push -1",
            "push -1",
            "mov rbp, -8",
            "out 6, al",
            "ud2",
            top = in(reg) top,
            options(noreturn)
        )
    };
}

/// Makes any hypercall.
pub fn ask(number: u64, arguments: [u64; 6]) -> i64 {
    let block = boot().call as *mut CallBlock;
    // SAFETY: the block is this guest's; the tender must check the call.
    unsafe {
        block.write_volatile(CallBlock { number, arguments, result: 0 });
        core::mem::transmute::<usize, extern "C" fn()>(boot().hypercall as usize)();
        (&raw const (*block).result).read_volatile()
    }
}

/// Every hypercall refuses every kind of bad argument, and does nothing then.
fn calls() {
    let boot = boot();
    let text = crate::run as *const () as u64;
    let wild = [
        0,
        1,
        boot.image.base - 1,
        boot.stack.base - 8,
        boot.stack.base + boot.stack.bytes - 4,
        boot.heap.base + boot.heap.bytes - 1,
        GUEST_SYSTEM_BASE,
        boot.hypercall,
        boot.call,
        0x40_0000,
        0x7fff_ffff_f000,
        1 << 47,
        0xffff_8000_0000_0000,
        u64::MAX,
        u64::MAX - 7,
    ];
    let refused = |answer: i64| (ERROR_UNSUPPORTED..=ERROR_CALL).contains(&answer);
    for address in wild {
        for number in [ASK_CONSOLE, ASK_RANDOM, ASK_DISCARD, ASK_REGION_CREATE] {
            for bytes in [16, 4095, u64::MAX] {
                assert!(
                    refused(ask(number, [address, bytes, 8192, 0, 0, 0])),
                    "{number} {address:#x} {bytes}"
                );
            }
        }
        assert_eq!(ask(ASK_PANIC, [address, 16, 0, 0, 0, 0]), ERROR_ADDRESS);
        assert!(refused(ask(ASK_REGION_OPEN, [address, 4, boot.heap.base, 0, 0, 0])));
        assert!(refused(ask(ASK_REGION_OPEN, [text, 4, address, 0, 0, 0])));
    }
    assert_eq!(ask(ASK_RANDOM, [text, 16, 0, 0, 0, 0]), ERROR_ADDRESS);
    assert_eq!(ask(ASK_EXIT, [MAX_STATUS + 1, 0, 0, 0, 0, 0]), ERROR_ARGUMENT);
    for number in [0, 11, 15, 23, 24, 1 << 32 | ASK_CONSOLE, 1 << 63, u64::MAX] {
        assert_eq!(ask(number, [u64::MAX; 6]), ERROR_CALL);
    }
    for number in ASK_REGION_CREATE..=ASK_RENDEZVOUS {
        for first in [99, 1 << 32, u64::MAX] {
            for second in [0, 1, 64, u64::MAX] {
                assert!(
                    refused(ask(number, [first, second, 3, 0, 0, 0])),
                    "{number} {first} {second}"
                );
            }
        }
    }
    // Too many arguments.
    assert_eq!(ask(ASK_CLOCK, [0, 0, 0, 0, 0, 1]), ERROR_ARGUMENT);
    assert_eq!(ask(ASK_PARK, [0, 0, 0, 0, 0, 1]), ERROR_ARGUMENT);
}

fn doorbell_storm() {
    for i in 0..20_000_usize {
        sleep::unpark(i % 70);
    }
    // SAFETY: the tender's function; the numbers are of no peer.
    let doorbell =
        unsafe { core::mem::transmute::<usize, extern "C" fn(u32)>(boot().doorbell as usize) };
    for peer in [64, 0xffff, u32::MAX, 0x8000_0000] {
        doorbell(peer);
    }
}

fn endless() {
    loop {
        core::hint::spin_loop();
    }
}

fn sleep_forever() {
    loop {
        sleep::park(None);
    }
}

fn call_storm() {
    for i in 0..2000 {
        let _ = ask(i % 12 + 4, [0; 6]);
    }
}
