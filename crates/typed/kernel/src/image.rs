//! The image of an accepted program: its text and data as they are, and the addresses that only a host knows.

use core::fmt;

use kyozon_abi::typed::{TypedGate, TYPED_OUTSIDE_GATES};
use kyozon_typed_checker::program::{Import, Program, Signature, RETURNS_VIEW, STUB};
use kyozon_typed_checker::value::Value;

/// int3, which fills what is neither text nor a stub.
const FILL: u8 = 0xcc;

/// Codes of results in a signature that fit each number: none, and any.
const FITTING_RESULTS: [u8; 2] = [0, 1];

/// Where an image is written, and what it refers to.
pub(crate) struct Place<'a> {
    /// Receives the image.
    pub(crate) image: &'a mut [u8],
    /// Where it will lie.
    pub(crate) address: u64,
    /// What programs can import.
    pub(crate) gates: &'a [TypedGate],
    /// Addresses of thunks: one for each general register, and one that returns.
    pub(crate) thunks: &'a [u64],
    /// If the process says what its imports mean: for each number, that of a gate. A number without a gate means that
    /// the process answers.
    pub(crate) imports: Option<&'a [u32]>,
    /// Addresses of gates for imports that the process answers, by their numbers in the file.
    pub(crate) outside: &'a [u64],
}

/// How the program of an image is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its offset in the image.
    pub(crate) offset: u32,
    /// What each argument may be: 0 where nothing is passed.
    pub(crate) masks: [u64; 6],
    /// Whether it has a result.
    pub(crate) result: bool,
    /// Arguments, in registers, of each import that the process answers.
    pub(crate) outside_arguments: [u8; TYPED_OUTSIDE_GATES],
}

/// Why an image is not built.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It has more bytes than there is room for.
    Room(u32, usize),
    /// No gate has the number of this import.
    Import(u32, Import),
    /// The process says nothing of this import.
    Unnamed(u32, Import),
    /// An import's signature is not the gate's.
    Signature(u32, Import, u32),
    /// A view for a number, or a number for a view.
    View(u32),
    /// The process cannot answer an import with this signature.
    Outside(u32),
    /// The process answers another import of this number, which has other arguments.
    Again(u32, Import),
    /// The code is out of reach of a jump.
    Far(u64),
    /// Something follows the text.
    Rest,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Room(bytes, room) => {
                write!(f, "the program needs {bytes} bytes of code and tables; there is room for {room}")
            }
            Refusal::Import(n, import) => {
                write!(f, "import {n}: this kernel has no function {}", import.number)
            }
            Refusal::Unnamed(n, import) => {
                write!(f, "import {n}: the request does not say what number {} is", import.number)
            }
            Refusal::View(n) => write!(
                f,
                "import {n}: a function that gives a view and one that gives a number cannot stand for each other"
            ),
            Refusal::Outside(n) => write!(
                f,
                "import {n}: the process answers functions of numbers in registers, with any number as result"
            ),
            Refusal::Again(n, import) => write!(
                f,
                "import {n}: another import of number {} has another number of arguments",
                import.number
            ),
            Refusal::Signature(n, import, arguments) => write!(
                f,
                "import {n}: function {} has {arguments} arguments in registers, and any number as result",
                import.number
            ),
            Refusal::Rest => f.write_str(
                "first contents of memory, or names, follow its text: this kernel runs programs without",
            ),
            Refusal::Far(address) => write!(f, "{address:#x} is out of a jump's reach"),
        }
    }
}

/// Writes the image.
pub(crate) fn build(program: &Program<'_>, place: Place<'_>) -> Result<Entry, Refusal> {
    let Place { image, address, gates, thunks, imports, outside } = place;
    if imports.is_none() && !program.rest().is_empty() {
        return Err(Refusal::Rest);
    }
    let (bytes, room) = (program.image_size(), image.len());
    let image = image.get_mut(..bytes as usize).ok_or(Refusal::Room(bytes, room))?;
    image.fill(FILL);
    put(image, 0, program.text());
    put(image, program.read_only_start(), program.read_only());
    for (n, function) in (0..).zip(program.entries()) {
        let function = address + u64::from(program.function(function).start);
        put(image, program.call_tables_start() + 8 * n, &function.to_le_bytes());
    }
    let mut outside_arguments = [None; TYPED_OUTSIDE_GATES];
    for n in 0..program.import_count() {
        let import = program.import(n);
        let number = usize::from(import.number);
        let meant = match imports {
            None => Some(u32::from(import.number)),
            Some(numbers) => Some(*numbers.get(number).ok_or(Refusal::Unnamed(n, import))?),
        };
        let gate = gates.iter().find(|gate| Some(gate.number) == meant);
        if gate.is_some_and(|gate| gives_view(gate.number) != gives_view(import.number.into())) {
            return Err(Refusal::View(n));
        }
        let arguments = arguments(program.signature_bytes(import.signature), import.number);
        let target = match (gate, imports) {
            (Some(gate), _) if arguments.map(u32::from) == Some(gate.arguments) => gate.address,
            (Some(gate), _) => return Err(Refusal::Signature(n, import, gate.arguments)),
            (None, None) => return Err(Refusal::Import(n, import)),
            (None, Some(_)) => {
                let place = outside_arguments.get_mut(number).zip(arguments);
                let (place, arguments) = place.ok_or(Refusal::Outside(n))?;
                // A call is known by its number only. Registers behind its arguments may hold addresses.
                if place.is_some_and(|earlier| earlier != arguments) {
                    return Err(Refusal::Again(n, import));
                }
                *place = Some(arguments);
                *outside.get(number).ok_or(Refusal::Outside(n))?
            }
        };
        jump(image, address, program.stubs_start() + n * STUB, target)?;
    }
    let first = program.stubs_start() + program.import_count() * STUB;
    for (n, &thunk) in (0..).zip(thunks) {
        jump(image, address, first + n * STUB, thunk)?;
    }
    let outside_arguments = outside_arguments.map(Option::unwrap_or_default);
    Ok(Entry { outside_arguments, ..entry(program) })
}

/// The number of arguments of a signature that has them in registers only, and any number or a view as result. The
/// checker has seen that the arguments of imports are numbers, and that an import's number says whether it gives a
/// view.
fn arguments(signature: &[u8; Signature::BYTES], number: u16) -> Option<u8> {
    let [result, count, _, _, _, _, _, _, stack, ..] = *signature;
    let fits = gives_view(number.into()) || FITTING_RESULTS.contains(&result);
    (fits && stack == 0).then_some(count)
}

/// Whether the function of this number gives a view: its result is an address, which a program must not take for a
/// number.
fn gives_view(number: u32) -> bool {
    number & u32::from(RETURNS_VIEW) != 0
}

fn entry(program: &Program<'_>) -> Entry {
    let function = program.function(program.entry);
    let signature = program.signature(function.signature);
    let mask = |argument| match argument {
        Value::Number(range) => range.high(),
        _ => 0,
    };
    let masks = signature.arguments.map(mask);
    Entry {
        offset: function.start,
        masks,
        result: signature.result != Value::UNKNOWN,
        outside_arguments: [0; TYPED_OUTSIDE_GATES],
    }
}

fn put(image: &mut [u8], at: u32, bytes: &[u8]) {
    image[at as usize..][..bytes.len()].copy_from_slice(bytes);
}

/// Writes `jmp target` at an offset of the image.
fn jump(image: &mut [u8], address: u64, at: u32, target: u64) -> Result<(), Refusal> {
    let behind = address.wrapping_add(u64::from(at) + 5);
    let distance = target.wrapping_sub(behind) as i64;
    let distance = i32::try_from(distance).map_err(|_| Refusal::Far(target))?;
    put(image, at, &[0xe9]);
    put(image, at + 1, &distance.to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use kyozon_abi::typed::{TYPED_REGION, TYPED_RESERVED};
    use kyozon_typed_checker::program::Host;

    use super::*;

    const ADDRESS: u64 = 0xffff_ffff_c000_0000;
    const GATES: [TypedGate; 3] = [
        TypedGate { address: ADDRESS - 0x1000, number: 1, arguments: 0 },
        TypedGate { address: ADDRESS + 0x10_0000, number: 2, arguments: 3 },
        TypedGate { address: ADDRESS + 0x10_0100, number: 0x8009, arguments: 1 },
    ];
    const HOST: Host = Host {
        region: TYPED_REGION,
        reserved: TYPED_RESERVED,
        indirect_branches: false,
        tracking: false,
    };

    /// Address n of a gate for an import that the process answers.
    const fn outside(n: u64) -> u64 {
        ADDRESS + 0x30_0000 + 16 * n
    }

    fn image(source: &str, room: usize) -> Result<Vec<u8>, String> {
        built(source, room, None).map(|(image, _)| image)
    }

    fn built(
        source: &str,
        room: usize,
        imports: Option<&[u32]>,
    ) -> Result<(Vec<u8>, Entry), String> {
        let file = kyozon_typed_asm::assemble(source, "test.s").unwrap().to_bytes();
        let program = Program::parse(&file, HOST).unwrap();
        let mut image = vec![0; room];
        let thunks: Vec<u64> = (0..17).map(|n| ADDRESS + 0x20_0000 + 64 * n).collect();
        let outside: Vec<u64> = (0..TYPED_OUTSIDE_GATES as u64).map(outside).collect();
        let place = Place {
            image: &mut image,
            address: ADDRESS,
            gates: &GATES,
            thunks: &thunks,
            imports,
            outside: &outside,
        };
        let entry = build(&program, place).map_err(|why| why.to_string())?;
        image.truncate(program.image_size() as usize);
        Ok((image, entry))
    }

    /// Where the stub n leads.
    fn target(image: &[u8], stub: usize) -> u64 {
        assert_eq!(image[stub], 0xe9);
        let distance = i32::from_le_bytes(image[stub + 1..stub + 5].try_into().unwrap());
        ADDRESS.wrapping_add(stub as u64 + 5).wrapping_add_signed(distance.into())
    }

    #[test]
    fn stubs_lead_to_gates_and_thunks() {
        let source =
            ".import write 2 (any, any, any) -> any\n.import id 1 () -> any\n.func f ()\n.return\n";
        let image = image(source, 4096).unwrap();
        let stubs = image.len() - 19 * STUB as usize;
        assert_eq!(target(&image, stubs), ADDRESS + 0x10_0000);
        assert_eq!(target(&image, stubs + 16), ADDRESS - 0x1000);
        for n in 0..17 {
            assert_eq!(target(&image, stubs + 32 + 16 * n), ADDRESS + 0x20_0000 + 64 * n as u64);
        }
    }

    #[test]
    fn an_import_has_the_signature_of_its_gate() {
        for (import, message) in [
            (".import f 3 ()", "import 0: this kernel has no function 3"),
            (".import f 1 (any) -> any", "import 0: function 1 has 0 arguments"),
            (".import f 1 () -> u32", "import 0: function 1 has 0 arguments"),
            (".import f 2 (any, any) -> any", "import 0: function 2 has 3 arguments"),
            (".import f 0x8001 () -> view", "import 0: this kernel has no function 32769"),
            (
                ".import f 0xc009 (any) -> writable_view",
                "import 0: this kernel has no function 49161",
            ),
            (".import f 0x8009 () -> view", "import 0: function 32777 has 1 arguments"),
        ] {
            let error = image(&format!("{import}\n.func g ()\n.return\n"), 4096).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn a_process_says_which_gate_an_import_has_and_answers_others() {
        let source =
            ".import id 0 () -> any\n.import grow 1 (u32, any) -> any\n.import end 2 (u32)\n\
            .func f ()\n.return\n.section .rest\n.byte 1\n";
        let (image, entry) = built(source, 4096, Some(&[1, u32::MAX, 7])).unwrap();
        let stubs = image.len() - 20 * STUB as usize;
        assert_eq!(target(&image, stubs), ADDRESS - 0x1000);
        assert_eq!(target(&image, stubs + 16), outside(1));
        assert_eq!(target(&image, stubs + 32), outside(2));
        assert_eq!(entry.outside_arguments[..4], [0, 2, 1, 0]);
    }

    #[test]
    fn a_process_answers_numbers_only() {
        for (import, message) in [
            ("63 (any, any, any, any, any, any) -> any", None),
            ("64 ()", Some("import 0: the process answers functions of numbers")),
            ("65 ()", Some("import 0: the request does not say what number 65 is")),
            ("0 (any) -> u32", Some("import 0: the process answers")),
            ("0 (any, any, any, any, any, any; stack 1)", Some("import 0: the process answers")),
        ] {
            let source = format!(".import f {import}\n.func g ()\n.return\n");
            let error = built(&source, 4096, Some(&[u32::MAX; 65])).err();
            let starts = |text: &str| error.as_ref().is_some_and(|error| error.starts_with(text));
            assert!(message.map_or(error.is_none(), starts), "{import}: {error:?}");
        }
    }

    #[test]
    fn a_process_answers_a_number_with_the_same_arguments() {
        let twice = |second: &str| {
            let imports = format!(".import f 1 (any) -> any\n.import g 1 {second}\n");
            built(&format!("{imports}.func h ()\n.return\n"), 4096, Some(&[0, u32::MAX]))
        };
        assert_eq!(twice("(u32)").unwrap().1.outside_arguments[..3], [0, 1, 0]);
        for second in ["()", "(any, any)"] {
            let error = twice(second).unwrap_err();
            assert!(error.starts_with("import 1: another import of number 1"), "{error}");
        }
    }

    #[test]
    fn a_process_names_no_view_for_a_number() {
        let source = ".import f 0 (any) -> any\n.func g ()\n.return\n";
        let error = built(source, 4096, Some(&[0x8009])).unwrap_err();
        assert!(error.starts_with("import 0: a function that gives a view"), "{error}");
    }

    #[test]
    fn the_entry_gets_what_its_signature_names() {
        let source = ".func f ()\n.return\n.entry g\n.func g (any, u32, u16, u8, unknown) -> any\nxor %eax, %eax\n.return\n";
        let file = kyozon_typed_asm::assemble(source, "test.s").unwrap().to_bytes();
        let program = Program::parse(&file, HOST).unwrap();
        let Entry { offset, masks, result, .. } = entry(&program);
        assert_eq!(masks, [u64::MAX, 0xffff_ffff, 0xffff, 0xff, 0, 0]);
        assert!(result && offset > 0);
    }

    #[test]
    fn contents_of_memory_are_refused() {
        let source = ".func f ()\n.return\n.section .rest\n.byte 1\n";
        let error = image(source, 4096).unwrap_err();
        assert!(error.starts_with("first contents of memory"), "{error}");
    }

    #[test]
    fn a_large_program_is_refused() {
        let error = image(".func f ()\n.return\n", 100).unwrap_err();
        assert!(error.ends_with("there is room for 100"), "{error}");
    }
}
