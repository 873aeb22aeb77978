//! Programs that the checker accepts, changed at random. What it still accepts runs, and may do nothing but what the
//! checker allows: see [`kyozon_typed_process`].
//!
//! Each program and its mutants run in a child. `KYOZON_SECONDS` is the time for all, `KYOZON_SEED` the start of the
//! random numbers, which a failure names.

mod fake;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_checker::program::{Host, Program};
use kyozon_typed_process::{Image, Space};

const HOST: Host =
    Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };
/// Bytes of the region that are memory.
const ACCESSIBLE: usize = 1 << 20;
/// Time of one run.
const LIMIT: Duration = Duration::from_millis(3);

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../asm/tests/typed/accept");
    let mut cases: Vec<_> = std::fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("entry").path())
        .collect();
    cases.sort();
    cases
}

#[test]
fn accepted_mutants_do_no_harm() {
    let cases = cases();
    let seconds = number("KYOZON_SECONDS", 3);
    let seed = number("KYOZON_SEED", 1);
    let share = seconds * 1000 / cases.len() as u64;
    let mut totals = [0u64; 2];
    for case in &cases {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads", "1"])
            .env("KYOZON_MUTANTS_OF", case)
            .env("KYOZON_MILLISECONDS", share.to_string())
            .env("KYOZON_SEED", seed.to_string())
            .output()
            .expect("child");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{}, seed {seed}: {}\n{text}\n{}",
            case.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let line = text.lines().find_map(|line| line.split_once("mutants: ")).expect("counts").1;
        let counts: Vec<u64> = line.split(' ').map(|n| n.parse().expect("a number")).collect();
        totals[0] += counts[0];
        totals[1] += counts[1];
    }
    println!("{} mutants, {} accepted and run", totals[0], totals[1]);
    assert!(totals[1] > totals[0] / 20, "of {} mutants only {} ran", totals[0], totals[1]);
}

/// Not a test: the child of the one above.
#[test]
#[ignore]
fn child() {
    let Some(case) = std::env::var_os("KYOZON_MUTANTS_OF") else { return };
    let source = std::fs::read_to_string(&case).expect("source");
    let file = kyozon_typed_asm::assemble(&source, "case.s").expect("assembles").to_bytes();
    let Ok(program) = Program::parse(&file, HOST) else {
        println!("mutants: 0 0");
        return;
    };
    let text = program.text().as_ptr() as usize - file.as_ptr() as usize;
    let annotations =
        (0..program.function_count()).map(|n| program.annotations(n).len()).sum::<usize>();
    let changeable = text - program.read_only().len() - annotations..text + program.text().len();
    let end = Instant::now() + Duration::from_millis(number("KYOZON_MILLISECONDS", 1000));
    let mut random = Random(number("KYOZON_SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut space = Space::new(HOST, ACCESSIBLE).expect("the region's addresses are free");
    let mut arena = Arena::new(256, 1 << 20);
    let (mut tried, mut ran) = (0u64, 0u64);
    while tried == 0 || Instant::now() < end {
        let mut mutant = file.clone();
        for _ in 0..random.below(4) {
            let at = changeable.start + random.below(changeable.len());
            mutant[at] = match random.below(3) {
                0 => random.next() as u8,
                1 => mutant[at] ^ 1 << random.below(8),
                _ => mutant[at].wrapping_add(1),
            };
        }
        tried += 1;
        let Ok((verdict, faults)) = verify(&mutant, HOST, &mut arena) else { continue };
        let imports = fake::imports(random.below(40));
        let image = Image::load(verdict, &faults, &imports).expect("loads");
        let mut arguments = [0; 6];
        for (n, argument) in arguments.iter_mut().enumerate() {
            let entry = verdict.program.function(verdict.program.entry);
            let most = verdict.program.signature(entry.signature).arguments[n]
                .operand(8)
                .map_or(0, |t| t.high());
            *argument = match random.below(4) {
                0 => random.next() & most,
                1 => (random.next() % 16) & most,
                2 => most,
                _ => (HOST.region + random.next() % ACCESSIBLE as u64) & most,
            };
        }
        let outcome = image.run(&mut space, arguments, LIMIT);
        ran += 1;
        if std::env::var_os("KYOZON_VERBOSE").is_some() {
            println!("{outcome:?}");
        }
    }
    println!("mutants: {tried} {ran}");
}
