//! A call of the checker, without addresses.

use core::fmt::{self, Write};

use kyozon_abi::typed::{
    TypedContents, TYPED_ACCEPTED, TYPED_INDIRECT_BRANCHES, TYPED_NO_MEMORY, TYPED_REFUSED,
    TYPED_REGION, TYPED_RESERVED, TYPED_STOPPED, TYPED_TRACKING, TYPED_USES_VECTORS,
};
use kyozon_typed_checker::check;
use kyozon_typed_checker::error::Rule;
use kyozon_typed_checker::flow::Memory;
use kyozon_typed_checker::program::{Host, Program};

use crate::image::{build, Entry, Place};

/// Instructions, edges, functions and table entries between two calls of `pause`. One takes at most the join of two
/// frames of 16 KiB, some ten microseconds.
const STEPS: u32 = 256;

/// What is said about an accepted program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accepted {
    pub(crate) contents: TypedContents,
    /// Bytes of its image.
    pub(crate) image: u32,
    /// `TYPED_USES_VECTORS`, or 0.
    pub(crate) properties: u32,
}

/// Checks a file. The message is written if it is not accepted.
pub(crate) fn call(
    file: &[u8],
    host: u32,
    memory: &mut Memory<'_>,
    faults: &mut [u32],
    message: &mut Message<'_>,
    pause: impl FnMut() -> bool,
) -> (u32, Accepted) {
    let mut go_on = now_and_then(pause);
    match check(file, host_of(host), memory, faults, &mut go_on) {
        Ok(verdict) => {
            let program = verdict.program;
            let annotations = (0..program.function_count()).map(|n| {
                go_on();
                program.annotations(n).len()
            });
            let contents = TypedContents {
                functions: program.function_count(),
                text_bytes: program.text().len() as u32,
                annotation_bytes: annotations.sum::<usize>() as u32,
                faults: verdict.faults as u32,
            };
            let properties = if verdict.vectors { TYPED_USES_VECTORS } else { 0 };
            (TYPED_ACCEPTED, Accepted { contents, image: program.image_size(), properties })
        }
        Err(error) => {
            let _ = write!(message, "{error}");
            let result = match error.rule {
                Rule::Memory => TYPED_NO_MEMORY,
                Rule::Stopped => TYPED_STOPPED,
                _ => TYPED_REFUSED,
            };
            (result, Accepted::default())
        }
    }
}

/// Makes the image of a file that was accepted for this host. The message is written if that fails.
pub(crate) fn image(
    file: &[u8],
    host: u32,
    place: Place<'_>,
    message: &mut Message<'_>,
    pause: impl FnMut() -> bool,
) -> Option<Entry> {
    let mut go_on = now_and_then(pause);
    let program = Program::parse_with(file, host_of(host), || _ = go_on());
    let entry = match program.map(|program| build(&program, place)) {
        Ok(Ok(entry)) => return Some(entry),
        Ok(Err(refusal)) => write!(message, "{refusal}"),
        Err(malformed) => write!(message, "{malformed}"),
    };
    let _ = entry;
    None
}

/// Calls `pause` for one in [`STEPS`] steps; whether to go on.
fn now_and_then(mut pause: impl FnMut() -> bool) -> impl FnMut() -> bool {
    let mut steps = 0;
    move || {
        steps += 1;
        steps % STEPS != 0 || pause()
    }
}

/// What the module's kernel provides and demands.
fn host_of(flags: u32) -> Host {
    Host {
        region: TYPED_REGION,
        reserved: TYPED_RESERVED,
        indirect_branches: flags & TYPED_INDIRECT_BRANCHES != 0,
        tracking: flags & TYPED_TRACKING != 0,
    }
}

/// A C string in memory of its user's; what does not fit is cut off.
pub(crate) struct Message<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl<'a> Message<'a> {
    /// An empty one.
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        if let Some(first) = bytes.first_mut() {
            *first = 0;
        }
        Message { bytes, used: 0 }
    }
}

impl Write for Message<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len().saturating_sub(self.used + 1);
        let count = text.len().min(room);
        let place = self.bytes.get_mut(self.used..).unwrap_or_default();
        for (to, from) in place.iter_mut().zip(text.bytes().take(count).chain([0])) {
            *to = from;
        }
        self.used += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::mem::MaybeUninit;

    use super::*;
    use crate::arena::cut;

    /// Result, contents and message of a source.
    fn verdict(source: &str, memory: usize, pauses: usize) -> (u32, TypedContents, String) {
        let file = kyozon_typed_asm::assemble(source, "test.s").unwrap().to_bytes();
        let mut words = vec![MaybeUninit::uninit(); memory / 8];
        let (mut faults, mut line) = ([0; 16], [b'x'; 256]);
        let mut left = pauses;
        let pause = || {
            left = left.saturating_sub(1);
            left > 0
        };
        let (result, Accepted { contents, .. }) =
            call(&file, 0, &mut cut(&mut words), &mut faults, &mut Message::new(&mut line), pause);
        let end = line.iter().position(|&byte| byte == 0).expect("a C string");
        (result, contents, String::from_utf8(line[..end].to_vec()).unwrap())
    }

    const GOOD: &str = ".func f ()\nmovb $1, 0x10000000\n.return\n";

    #[test]
    fn a_good_program_is_accepted() {
        let (result, contents, message) = verdict(GOOD, 1 << 20, 2);
        assert_eq!((result, message.as_str()), (TYPED_ACCEPTED, ""));
        assert_eq!((contents.functions, contents.faults), (1, 1));
    }

    #[test]
    fn a_bad_program_is_refused_with_the_rule() {
        let (result, _, message) = verdict(".func f (any)\nmovb $1, (%rdi)\n.return\n", 1 << 20, 2);
        assert_eq!(result, TYPED_REFUSED);
        assert!(message.contains("write of 1 bytes"), "{message}");
    }

    #[test]
    fn little_memory_is_told_apart() {
        let jumps = ".func f (any)\ntest %edi, %edi\nje 1f\nnop\n1: .return\n";
        assert_eq!(verdict(jumps, 1 << 10, 2).0, TYPED_NO_MEMORY);
        assert_eq!(verdict(jumps, 1 << 20, 2).0, TYPED_ACCEPTED);
    }

    #[test]
    fn a_long_check_pauses_and_can_be_stopped() {
        let long = format!(".func f ()\n{}.return\n", "nop\n".repeat(10 * STEPS as usize));
        assert_eq!(verdict(&long, 1 << 20, 100).0, TYPED_ACCEPTED);
        let (result, _, message) = verdict(&long, 1 << 20, 3);
        assert_eq!(result, TYPED_STOPPED);
        assert!(message.contains("stopped"), "{message}");
    }

    #[test]
    fn what_precedes_the_text_pauses_too() {
        let functions: String =
            (0..10 * STEPS).map(|n| format!(".func f{n} ()\n.return\n")).collect();
        let mut file = kyozon_typed_asm::assemble(&functions, "test.s").unwrap().to_bytes();
        // The entry is no function, which is seen after all functions.
        file[60..64].fill(0xff);
        let (mut words, mut pauses) = ([MaybeUninit::uninit(); 128], 0);
        let pause = || {
            pauses += 1;
            true
        };
        let (mut memory, mut line) = (cut(&mut words), [0; 256]);
        let message = &mut Message::new(&mut line);
        assert_eq!(call(&file, 0, &mut memory, &mut [], message, pause).0, TYPED_REFUSED);
        assert_eq!(pauses, 10);
    }

    #[test]
    fn an_annotation_pauses_at_each_item() {
        // One head, at the first instruction, which says 10 * 256 times that nothing is known of rax.
        let items = 10 * STEPS;
        let mut annotations = vec![0, 0x20, 0x80 | (items & 0x7f) as u8, (items >> 7) as u8];
        annotations.resize(annotations.len() + 3 * items as usize, 0);
        let mut file = b"KYZTYPED".to_vec();
        let (region, bytes) = (TYPED_REGION as u32, annotations.len() as u32);
        for field in [1, 0, region, 0, 1, 0, 1, 1, 0, 0, 0, 0, bytes, 0] {
            file.extend(u32::to_le_bytes(field));
        }
        file.extend([0; 24]);
        file.extend(annotations);
        // nop; the text ends without a return.
        file.push(0x90);
        let (mut words, mut pauses) = (vec![MaybeUninit::uninit(); 1 << 14], 0);
        let pause = || {
            pauses += 1;
            true
        };
        let (mut memory, mut line) = (cut(&mut words), [0; 256]);
        let message = &mut Message::new(&mut line);
        assert_eq!(call(&file, 0, &mut memory, &mut [], message, pause).0, TYPED_REFUSED);
        assert_eq!(pauses, 10, "{}", String::from_utf8_lossy(&line));
    }

    #[test]
    fn a_message_is_cut_off_at_its_room() {
        let mut bytes = [b'x'; 8];
        let [first, second] = ["12345", "6789"];
        let _ = write!(Message::new(&mut bytes), "{first}{second}");
        assert_eq!(&bytes, b"1234567\0");
        let _ = write!(Message::new(&mut []), "{first}");
    }
}
