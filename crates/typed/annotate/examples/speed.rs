//! Measures the checker on an accepted file: `cargo run --release -p kyozon-typed-annotate --example speed FILE`.
//!
//! Prints the speed of the check and of the decoder alone, in 10^6 bytes of text per second of one core: medians of
//! interleaved runs. A text of at least 10^6 bytes gives the figure that is promised for large programs.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use kyozon_typed_annotate::memory::Arena;
use kyozon_typed_checker::check;
use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::program::{Host, Program};

const RUNS: usize = 41;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("speed: which file? Name one that `kyozon typed asm` made");
        return ExitCode::FAILURE;
    };
    let measured = std::fs::read(&path).map_err(|e| e.to_string()).and_then(|file| measure(&file));
    match measured {
        Ok(line) => println!("{line}"),
        Err(message) => {
            eprintln!("speed: {path}: {message}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(file: &[u8]) -> Result<String, String> {
    let region = file.get(16..24).and_then(|bytes| bytes.try_into().ok());
    let region = u64::from_le_bytes(region.unwrap_or_default());
    let host = Host { region, reserved: 40 << 30, indirect_branches: true, tracking: false };
    let program = Program::parse(file, host).map_err(|malformed| malformed.to_string())?;
    let text = program.text();
    let mut arena = Arena::default();
    let mut faults = vec![0; text.len()];
    let (mut checks, mut decodes) = (Vec::new(), Vec::new());
    let mut instructions = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        check(black_box(file), host, &mut arena.memory(), &mut faults, || true)
            .map_err(|e| e.to_string())?;
        checks.push(start.elapsed());
        let start = Instant::now();
        instructions = count(black_box(text));
        decodes.push(start.elapsed());
    }
    let speed = |mut times: Vec<std::time::Duration>| {
        times.sort();
        text.len() as f64 / times[RUNS / 2].as_secs_f64() / 1e6
    };
    let (check, decode) = (speed(checks), speed(decodes));
    Ok(format!(
        "{} bytes of text, {instructions} instructions: check {check:.1} MB/s, decode {decode:.1} MB/s",
        text.len()
    ))
}

/// Decodes all of a text, from one instruction to the next.
fn count(text: &[u8]) -> usize {
    let (mut at, mut instructions) = (0, 0);
    while at < text.len() {
        at += decode(&text[at..]).map_or(1, |insn| usize::from(black_box(insn).length));
        instructions += 1;
    }
    instructions
}
