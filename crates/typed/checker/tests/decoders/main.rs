//! The checker's decoder against iced-x86 and yaxpeax-x86: each instruction that it accepts must have the same length,
//! operands and effects for them.

mod effects;
mod iced;
mod text;
mod yaxpeax;

use iced_x86::InstructionInfoFactory;
use kyozon_typed_checker::decode::{decode, Refusal};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use yaxpeax_x86::amd64::InstDecoder;

/// The decoders, and what they disagreed about.
struct Judge {
    factory: InstructionInfoFactory,
    yaxpeax: InstDecoder,
    accepted: u64,
    refused: u64,
    /// The first instruction for each mnemonic and subject.
    disagreements: HashMap<String, String>,
}

impl Judge {
    fn new() -> Judge {
        Judge {
            factory: InstructionInfoFactory::new(),
            yaxpeax: InstDecoder::default(),
            accepted: 0,
            refused: 0,
            disagreements: HashMap::new(),
        }
    }

    /// Decodes the first instruction of `bytes` with all three; returns whether the checker accepts it.
    fn judge(&mut self, bytes: &[u8]) -> bool {
        let Ok(insn) = decode(bytes) else {
            self.refused += 1;
            return false;
        };
        self.accepted += 1;
        let theirs = iced::decode(bytes);
        let results = [
            iced::compare(&insn, &theirs, &mut self.factory),
            iced::compare_vendors(bytes, &theirs),
            iced::compare_prefixes(&insn, bytes, &theirs),
            yaxpeax::compare(&insn, bytes, &self.yaxpeax),
        ];
        for message in results.into_iter().filter_map(Result::err) {
            let code = format!("{:02x?} {:?}", &bytes[..insn.length as usize], theirs.code());
            let what = message.split(':').next().unwrap_or_default();
            let key = format!("{:?}, {what}", theirs.mnemonic());
            self.disagreements.entry(key).or_insert(format!("{code} {message}"));
        }
        true
    }

    fn end(self, what: &str) {
        println!("{what}: {} accepted, {} refused", self.accepted, self.refused);
        assert!(self.accepted > 0);
        let mut lines: Vec<_> =
            self.disagreements.iter().map(|(m, c)| format!("{m}: {c}")).collect();
        lines.sort();
        lines.truncate(60);
        assert!(lines.is_empty(), "the decoders disagree:\n{}", lines.join("\n"));
    }
}

/// A generator of numbers that repeat (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// How long a test of many cases runs.
fn until(seconds: u64) -> impl Fn() -> bool {
    let start = Instant::now();
    move || start.elapsed() < Duration::from_secs(seconds)
}

/// Goes through `limit` bytes of real code; prints what is refused.
fn real_code(limit: usize) {
    let mut judge = Judge::new();
    let mut refused: HashMap<String, u64> = HashMap::new();
    for (name, text) in text::all(limit) {
        let (accepted, all) = (judge.accepted, judge.refused);
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..text.len().min(at + 16)];
            let theirs = iced::decode(rest);
            if theirs.is_invalid() {
                at += 1;
                continue;
            }
            if !judge.judge(rest) {
                let why = decode(rest).expect_err("refused before");
                *refused.entry(format!("{:?}: {why}", theirs.code())).or_default() += 1;
            }
            at += theirs.len();
        }
        let (accepted, others) = (judge.accepted - accepted, judge.refused - all);
        let share = 100.0 * accepted as f64 / (accepted + others) as f64;
        println!("{name}: {} bytes, {share:.2} % accepted", text.len());
    }
    let mut refused: Vec<_> = refused.into_iter().collect();
    refused.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    refused.iter().take(60).for_each(|(why, count)| println!("{count:8} {why}"));
    judge.end("real code");
}

#[test]
fn real_code_is_understood_as_others_do() {
    real_code(4 << 20);
}

/// `cargo test --release -p kyozon-typed-checker --test decoders -- --ignored --nocapture much_real_code`
#[test]
#[ignore = "takes minutes"]
fn much_real_code_is_understood_as_others_do() {
    real_code(200 << 20);
}

/// All opcodes with all ModRM bytes and with each kind of prefix.
#[test]
fn each_opcode_is_understood_as_others_do() {
    const LEGACY: [&[u8]; 16] = [
        &[],
        &[0x66],
        &[0xf2],
        &[0xf3],
        &[0xf0],
        &[0x66, 0xf0],
        &[0xf0, 0x66],
        &[0x66, 0xf2],
        &[0xf3, 0x66],
        &[0xf2, 0xf3],
        &[0xf0, 0xf3],
        &[0x2e],
        &[0x66, 0x66],
        &[0x66, 0x2e],
        &[0x64],
        &[0x67],
    ];
    const REX: [&[u8]; 7] = [&[], &[0x40], &[0x41], &[0x44], &[0x48], &[0x4f], &[0x48, 0x66]];
    const MAPS: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
    let mut judge = Judge::new();
    for legacy in LEGACY {
        for rex in REX {
            for map in MAPS {
                let prefix = [legacy, rex, map].concat();
                let mut bytes = [0x81; 24];
                bytes[..prefix.len()].copy_from_slice(&prefix);
                for opcode in 0..=255 {
                    for modrm in 0..=255 {
                        bytes[prefix.len()] = opcode;
                        bytes[prefix.len() + 1] = modrm;
                        // An index and a base that depend on REX; then a displacement and an immediate.
                        bytes[prefix.len() + 2] = 0x65;
                        bytes[prefix.len() + 3] = opcode ^ modrm;
                        judge.judge(&bytes[..16]);
                    }
                }
            }
        }
    }
    judge.end("opcodes");
}

fn random_bytes(seconds: u64) {
    let mut judge = Judge::new();
    let go_on = until(seconds);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while go_on() {
        for _ in 0..10_000 {
            let bytes = (u128::from(random.next()) << 64 | u128::from(random.next())).to_le_bytes();
            judge.judge(&bytes);
            let shorter = decode(&bytes[..random.next() as usize % 16]);
            let whole = decode(&bytes);
            assert!(shorter == whole || shorter == Err(Refusal::Truncated), "{bytes:02x?}");
        }
    }
    judge.end("random bytes");
}

#[test]
fn random_bytes_are_understood_as_others_do() {
    random_bytes(3);
}

fn mutants(seconds: u64) {
    let mut judge = Judge::new();
    let mut random = Random(0xdead_beef_cafe_f00d);
    let texts = text::all(8 << 20);
    let go_on = until(seconds);
    while go_on() {
        for _ in 0..10_000 {
            let (_, text) = &texts[random.next() as usize % texts.len()];
            let at = random.next() as usize % text.len().saturating_sub(16).max(1);
            let Some(mut bytes) = text[at..].first_chunk::<16>().copied() else { continue };
            for _ in 0..1 + random.next() % 2 {
                bytes[random.next() as usize % 6] = random.next() as u8;
            }
            judge.judge(&bytes);
        }
    }
    judge.end("changed instructions");
}

#[test]
fn changed_instructions_are_understood_as_others_do() {
    mutants(3);
}

/// `cargo test --release -p kyozon-typed-checker --test decoders -- --ignored --nocapture long_fuzzing`
#[test]
#[ignore = "takes minutes"]
fn long_fuzzing_finds_no_disagreement() {
    random_bytes(60);
    mutants(60);
}

/// Decodes the accepted instructions of real code, one after the other, and prints the speed:
/// `cargo test --release -p kyozon-typed-checker --test decoders -- --ignored --nocapture decoding_speed`
#[test]
#[ignore = "a measurement"]
fn decoding_speed() {
    for (name, text) in text::all(64 << 20) {
        let mut code = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..text.len().min(at + 16)];
            let length = iced::decode(rest).len().max(1);
            if let Ok(insn) = decode(rest) {
                code.extend_from_slice(&rest[..insn.length as usize]);
            }
            at += length;
        }
        let ours = best(|| {
            let (mut at, mut sum) = (0, 0);
            while let Ok(insn) = decode(&code[at..]) {
                at += insn.length as usize;
                sum += insn.immediate ^ i64::from(insn.memory.displacement);
            }
            assert_eq!(at, code.len());
            std::hint::black_box(sum);
        });
        let iced = best(|| {
            let mut decoder = iced_x86::Decoder::new(64, &code, iced_x86::DecoderOptions::NONE);
            let mut instruction = iced_x86::Instruction::default();
            while decoder.can_decode() {
                decoder.decode_out(&mut instruction);
            }
        });
        let speed = |time: Duration| code.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{name}: {} bytes, {:.0} MB/s, iced-x86 {:.0} MB/s",
            code.len(),
            speed(ours),
            speed(iced)
        );
    }
}

fn best(mut work: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    times.min().expect("five of them")
}
