use super::*;
use crate::fake::{Fake, GATES, TABLES};
use crate::thread::State;
use kyozon_abi::layer::{Frame, TickEvent};
use kyozon_typed_annotate::memory::Arena;
use std::collections::BTreeMap;

/// Stores, calls the kernel, and has a call table.
const PROGRAM: &str = ".region 0x40000000\n\
    .import read 32 (any, any, any) -> any\n\
    .import wait 26 () -> any\n\
    .func main () -> any frame 8\n\
    sub $8, %rsp\n\
    xor %eax, %eax\n\
    cmp $0x5000, %sp\n\
    jb out\n\
    movl $7, 0x40000000\n\
    call wait\n\
    mov $0x1000, %edi\n\
    mov $16, %esi\n\
    mov $8, %edx\n\
    call read\n\
    out: add $8, %rsp\n\
    .return\n";

fn file(source: &str) -> Vec<u8> {
    kyozon_typed_asm::assemble(source, "test.s").unwrap().to_bytes()
}

fn checked(file: &[u8]) -> Result<Accepted<'_>, Refusal> {
    check(file, &mut Arena::new(1 << 6, 1 << 14).memory(), &mut [0; 64], || {})
}

/// A running system whose only task is this program, with `pages` pages of memory.
fn system(file: &[u8], pages: usize) -> Result<(Kernel, Fake, Frame), crate::boot::BootError> {
    let (mut kernel, mut fake) = (Kernel::EMPTY, Fake::new(pages));
    let mut memory = fake.memory;
    let mut boot = Boot {
        frames: &mut fake,
        memory: &mut memory,
        tables: TABLES,
        data: &[],
        typed: Some(checked(file).unwrap()),
        gates: GATES,
        info: StartInfo { parameter: 4711, ..StartInfo::default() },
        yield_cpu: |_| {},
    };
    boot.tasks(&mut kernel, &[])?;
    let frame = kernel.start(&mut fake);
    Ok((kernel, fake, frame))
}

fn bytes<const N: usize>(kernel: &Kernel, fake: &mut Fake, va: u64) -> [u8; N] {
    let mut into = [0; N];
    assert!(kernel.typed.unwrap().low.read(fake, va, &mut into), "{va:#x}");
    into
}

#[test]
fn what_the_checker_or_the_kernel_cannot_vouch_for_is_refused() {
    let import =
        |import: &str| format!(".region 0x40000000\n.import f {import}\n.func main ()\n.return\n");
    for (source, reason) in [
        (".region 0x40000000\n.func f (any)\nmovb $1, (%rdi)\n.return\n".into(), "write of 1"),
        (".region 0x10000000\n.func f ()\n.return\n".into(), "made for a region at 0x10000000"),
        (".region 0x40000000\n.func f ()\npxor %xmm0, %xmm0\n.return\n".into(), "it uses vector"),
        (import("1 (any) -> any"), "import 0: the microkernel has no such call"),
        (import("26 (any) -> any"), "import 0: the call has other arguments or another result"),
        (import("26 () -> u32"), "import 0: the call has other arguments or another result"),
        (import("18 (any; stack 1)"), "import 0: the call has other arguments"),
        (import("0x8020 (any, any, any) -> view"), "import 0: the microkernel has no such call"),
        (import("32 (any, any, any) -> any") + ".section .rest\n.byte 1\n", "no manifest"),
        (".region 0x40000000\n.func f (u16)\n.return\n".into(), "its entry takes more than one"),
        (
            ".region 0x40000000\n.func f (u32, any)\n.return\n".into(),
            "its entry takes more than one",
        ),
    ] {
        let file = file(&source);
        let refusal = checked(&file).map(drop).expect_err(&source).to_string();
        assert!(refusal.contains(reason), "{refusal}, not {reason}");
    }
    assert!(checked(&file(PROGRAM)).is_ok());
    assert!(!is_program(b"KYZTYPE") && is_program(&file(PROGRAM)));
}

#[test]
fn a_check_has_the_memory_that_it_is_given() {
    let file = file(PROGRAM);
    let mut none = Memory { labels: &mut [], granules: &mut [], numbers: &mut [] };
    assert!(matches!(check(&file, &mut none, &mut [0; 64], || {}), Err(Refusal::Checker(_))));
    let mut pauses = 0;
    let long = format!(".region 0x40000000\n.func f ()\n{}.return\n", "nop\n".repeat(640));
    let long = self::file(&long);
    check(&long, &mut Arena::new(1 << 6, 1 << 14).memory(), &mut [0; 64], || pauses += 1).unwrap();
    assert!(pauses >= 10, "{pauses}");
}

#[test]
fn image_region_and_stack_are_the_programs() {
    let source = file(PROGRAM);
    let (kernel, mut fake, frame) = system(&source, 200).unwrap();
    let program = checked(&source).unwrap().program;
    assert_eq!((frame.rip, frame.cs, frame.rdi), (IMAGE.base, KERNEL_CODE_SELECTOR, 0));
    assert_eq!((frame.rsp % 0x1_0000, frame.rsp), (0xfff8, STACK_TOP - 8));
    // The entry returns to the last stub, in the image.
    let back = IMAGE.base + u64::from(checked(&source).unwrap().program.image_size());
    assert_eq!(bytes(&kernel, &mut fake, frame.rsp), back.to_le_bytes());
    let code: [u8; 16] = bytes(&kernel, &mut fake, back);
    let jump = [0xb8, 0, 0, 0, 0, 0x41, 0xbb, 0, 0x12, 0, 0x20, 0x41, 0xff, 0xe3, 0xcc, 0xcc];
    assert_eq!(code, jump);
    let text: [u8; 16] = bytes(&kernel, &mut fake, IMAGE.base);
    assert_eq!(text, program.text()[..16]);
    let stub = |n: u32| IMAGE.base + u64::from(program.stubs_start() + n * STUB);
    let (read, wait): ([u8; 16], [u8; 16]) =
        (bytes(&kernel, &mut fake, stub(0)), bytes(&kernel, &mut fake, stub(1)));
    assert_eq!(
        read,
        [0xb8, 32, 0, 0, 0, 0x41, 0xbb, 0, 0x10, 0, 0x20, 0x41, 0xff, 0xe3, 0xcc, 0xcc]
    );
    assert_eq!(wait[..9], [0xb8, 26, 0, 0, 0, 0x41, 0xbb, 0, 0x11]);
    assert_eq!(bytes(&kernel, &mut fake, stub(2 + 11)), [0x41, 0xff, 0xe3, 0xcc]);
    assert_eq!(bytes(&kernel, &mut fake, stub(2 + 16)), [0xc3, 0xcc]);
    assert_eq!(bytes(&kernel, &mut fake, TASK_REGION + 0xfff8), [0; 8]);
    let low = kernel.typed.unwrap().low;
    for unmapped in [TASK_REGION + 0x1_0000, STACK_START - 8, STACK_TOP, IMAGE.base - 8] {
        assert_eq!(low.physical(&mut fake, unmapped), None, "{unmapped:#x}");
    }
}

#[test]
fn user_mode_reaches_nothing_and_no_page_is_writable_and_executable() {
    let (kernel, mut fake, _) = system(&file(PROGRAM), 200).unwrap();
    let level4 = *fake.page(kernel.tasks[0].space.root & !0xfff).unwrap();
    assert_eq!(level4[0] & 7, 3, "the supervisor's");
    let mut pages = BTreeMap::new();
    let mut tables = vec![(level4[0] & 0xf_ffff_ffff_f000, 3)];
    while let Some((table, level)) = tables.pop() {
        let Some(entries) = fake.page(table).copied() else { continue };
        for entry in entries.into_iter().filter(|entry| *entry != 0) {
            if level > 1 {
                tables.push((entry & 0xf_ffff_ffff_f000, level - 1));
                continue;
            }
            assert_eq!(entry & 4, 0);
            assert!(entry & 2 == 0 || entry >> 63 == 1, "writable and executable");
            assert_eq!(pages.insert(entry & 0xf_ffff_ffff_f000, ()), None, "mapped twice");
        }
    }
    assert_eq!(pages.len(), 1 + 16 + 16, "image, region, stack");
    for few in [0, 1, 10, 30, 40] {
        let error = system(&file(PROGRAM), few).err().unwrap();
        assert_eq!((error.task, error.reason), (0, "not enough memory"), "{few}");
    }
}

#[test]
fn calls_reach_the_first_memory_and_linux_only() {
    let (mut kernel, mut fake, _) = system(&file(PROGRAM), 200).unwrap();
    let mut call = |number, words| kernel.typed_call(number, words, &mut fake) as i64;
    assert_eq!(call(NO_OPERATION, [0; 3]), 0);
    assert_eq!(call(PARAMETER, [0; 3]), 4711);
    assert_eq!([call(CLOCK, [0; 3]), call(CLOCK, [0; 3])], [1, 2]);
    let high = 0xffff_ffff_0000_0000;
    for (words, answer) in [
        ([0x1000, 0xff8, 16], 0),
        ([0x2000, high | 0x8000, high | 4096], 0),
        ([0x2ff8, 0, 8], 0),
        ([0x2ff8, 0, 16], E_ARGUMENT),
        ([0x1001, 0, 8], E_ARGUMENT),
        ([0x1000, 0, 12], E_ARGUMENT),
        ([0x1000, 0, 4104], E_ARGUMENT),
        ([u64::MAX - 7, 0, 8], E_ARGUMENT),
        ([0x1000, 4, 8], E_ADDRESS),
        ([0x1000, 0xfff8, 16], E_ADDRESS),
        ([0x1000, 0xffff_fff8, 16], E_ADDRESS),
    ] {
        assert_eq!(call(READ_LINUX, words), answer, "{words:x?}");
    }
    for (words, answer) in [
        ([0x8000, 2, 0], 0),
        ([0, 257, 0], E_ARGUMENT),
        ([0xffff, 2, 0], E_ADDRESS),
        ([u64::from(u32::MAX), 1, 0], E_ADDRESS),
    ] {
        assert_eq!(call(REPORT, words), answer, "{words:x?}");
    }
    for number in [0, WAIT_TICK, EXIT, RECEIVE, REPAIR, RETURNED, u64::MAX] {
        assert_eq!(call(number, [0; 3]), E_CALL, "{number}");
    }
    // The copy crossed into the next page.
    assert_eq!(bytes(&kernel, &mut fake, TASK_REGION + 0xff8), 0x1000u64.to_le_bytes());
    assert_eq!(bytes(&kernel, &mut fake, TASK_REGION + 0x1000), 0x1008u64.to_le_bytes());
    kernel.tasks[0].rights = 0;
    assert_eq!(kernel.typed_call(READ_LINUX, [0x1000, 0, 8], &mut fake) as i64, E_RIGHT);
    assert_eq!(kernel.typed_call(REPORT, [0, 1, 0], &mut fake) as i64, E_RIGHT);
}

#[test]
fn ticks_faults_and_the_return_are_those_of_a_task() {
    let (mut kernel, mut fake, mut frame) = system(&file(PROGRAM), 200).unwrap();
    // Cut off: it goes on where it was, in kernel mode.
    (frame.vector, frame.rip, frame.rbx) = (2, IMAGE.base + 5, 33);
    kernel.trap(&mut frame, &mut fake);
    assert_eq!((frame.rip, frame.rbx, frame.cs), (IMAGE.base + 5, 33, KERNEL_CODE_SELECTOR));
    // It waits for a tick.
    fake.ticks.push_back(TickEvent { number: 7, ..TickEvent::default() });
    (frame.vector, frame.rax) = (SYSTEM_CALL_VECTOR, WAIT_TICK);
    kernel.trap(&mut frame, &mut fake);
    assert_eq!((frame.rax, frame.cs, fake.idles), (0, KERNEL_CODE_SELECTOR, 1));
    (frame.vector, fake.cr2) = (14, 0x4002_0000);
    kernel.threads[0].frame = frame;
    kernel.fault(&mut fake);
    kernel.end_tasks(&mut fake);
    assert!(fake.lines[0]
        .starts_with("task 0 stopped: vector 14 error 0x0 rip 0xc00000005 cr2 0x40020000"));
    assert_eq!((kernel.tasks[0].alive, kernel.threads[0].state), (false, State::None));
}

#[test]
fn a_fault_handler_cannot_move_typed_code() {
    for (what, rip, goes_on) in [
        (FAULT_RESUME, 0, true),
        (FAULT_RESUME, IMAGE.base + 1, false),
        (FAULT_RESUME, 0x1000, false),
        (FAULT_STOP, 0, false),
    ] {
        let (mut kernel, mut fake, mut frame) = system(&file(PROGRAM), 200).unwrap();
        kernel.tasks[0].fault_handler = Some(0);
        (frame.vector, frame.rip) = (14, IMAGE.base + 5);
        kernel.threads[0].frame = frame;
        kernel.fault(&mut fake);
        kernel.unqueue(0);
        kernel.after_fault(0, what, rip);
        kernel.end_tasks(&mut fake);
        let thread = &kernel.threads[0];
        assert_eq!(thread.state == State::Ready, goes_on, "{what} {rip:#x}");
        assert_eq!(thread.frame.rip, if goes_on { IMAGE.base + 5 } else { 0 }, "{what} {rip:#x}");
    }
}

#[test]
fn the_entry_returns_to_the_end_of_the_task() {
    let (mut kernel, mut fake, frame) = system(&file(PROGRAM), 200).unwrap();
    kernel.threads[0].frame = frame;
    assert!(matches!(kernel.typed_returned(&mut fake), Ok(Outcome::Waits)));
    kernel.end_tasks(&mut fake);
    assert!(!kernel.tasks[0].alive && fake.lines.is_empty());
    // A task behind page tables cannot make that call.
    let mut user = crate::fake::System::new(1);
    user.call(RETURNED, 0, [0; 6]);
    assert_eq!(user.answer(), E_CALL);
    for number in [READ_LINUX, CLOCK, PARAMETER] {
        assert_eq!(user.call(number, 0, [0; 6]).answer(), E_CALL);
    }
}
