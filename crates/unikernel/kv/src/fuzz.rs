//! Untrusted input. A target for cargo-fuzz is one line:
//! `fuzz_target!(|input: &[u8]| { kyozon_kv::fuzz::commands(input); });`

use super::command::{execute, Store, Then};
use super::{resp, table::Table};
use alloc::vec::Vec;
use kyozon_channel::border::TrustedGroup;

/// Parses and executes a client's input, and checks the answers. Returns their number.
///
/// # Panics
///
/// Panics if a check fails.
pub fn run<G: TrustedGroup>(input: &[u8], me: &G) -> usize {
    let store = Store { table: Table::new(1 << 20, [1, 2]), debug: false };
    let (mut rest, mut count) = (input, 0);
    while let Ok(Some(command)) = resp::parse(rest) {
        assert!((1..=resp::MAX_COMMAND_BYTES.min(rest.len())).contains(&command.bytes));
        // A part of a command is neither a command nor an error.
        for part in [command.bytes / 2, command.bytes - 1] {
            assert!(matches!(resp::parse(&rest[..part]), Ok(None)));
        }
        assert!(command.words.clone().count() <= resp::MAX_COMMAND_BYTES / 2);
        let empty = command.is_empty();
        let mut answer = Vec::new();
        let then = execute(command.words, &store, me, &mut answer);
        let wanted = usize::from(!empty && then != Then::Stop);
        assert_eq!(resp::answers(&answer), Some(wanted));
        count += wanted;
        rest = &rest[command.bytes..];
    }
    if let Err(error) = resp::parse(rest) {
        let mut answer = Vec::new();
        resp::error(&mut answer, format_args!("ERR {error}"));
        assert_eq!(resp::answers(&answer), Some(1));
    }
    count
}

/// [`run`], by the calling thread.
pub fn commands(input: &[u8]) {
    kyozon_portable::machine::with_member(|me| run(input, me));
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_portable::Xorshift;

    #[test]
    fn random_input_is_answered() {
        let words: [&[u8]; 24] = [
            b"*1\r\n",
            b"*2\r\n",
            b"*3\r\n",
            b"*0\r\n",
            b"*",
            b"$3\r\n",
            b"$1\r\n",
            b"$0\r\n",
            b"$",
            b"SET",
            b"GET",
            b"DEL",
            b"INCR",
            b"a",
            b"1",
            b"\r\n",
            b"\n",
            b" ",
            b"-1",
            b"PING\r\n",
            b"SET a 1\r\n",
            b"FLUSHALL\r\n",
            b"CONFIG GET save\r\n",
            b"DBSIZE\r\n",
        ];
        let me = kyozon_portable::machine::member();
        let mut numbers = Xorshift::new(5);
        let mut answers = 0;
        for _ in 0..20_000 {
            let count = numbers.next().unwrap_or(0) as usize % 20;
            let input: Vec<u8> = numbers
                .by_ref()
                .take(count)
                .flat_map(|number| words[number as usize % words.len()].to_vec())
                .collect();
            answers += run(&input, &me);
        }
        assert!(answers > 20, "{answers}");
    }
}
