//! Runs compiled programs with WASI in this process: checks a file, binds its imports, calls `_start`.
//!
//! The checker decides anew for each run; nothing that a file says of itself is believed. What a program reaches beside
//! its memory is what [`Start`] gives it. It runs on the thread that calls [`run`], one program at a time; or, by
//! [`Command`], with the interface of any host.
//!
//! The crate must not know how programs are compiled.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::time::Duration;

use kyozon_typed_annotate::memory::verify;
pub use kyozon_typed_annotate::memory::Arena;
use kyozon_typed_checker::program::{Host, Program};
use kyozon_typed_manifest::{Import, Kind, Manifest};
pub use kyozon_typed_manifest::{Memory, MAGIC, PAGE};
pub use kyozon_typed_process::{is_due, stop, timed, Calls, Engine, Outcome, Space};
use kyozon_typed_process::{Call, Image, Instance};
use kyozon_typed_wasi::function::Type;
use kyozon_typed_wasi::{Exit, Function, Wasi, MODULE, PARAMETERS};
use kyozon_typed_wasi_host::Process;
pub use kyozon_typed_wasi_host::{Directory, Start};

/// The function that a command has.
const MAIN: &str = "_start";
/// Arguments of integers that are passed in registers.
const REGISTERS: usize = 6;

/// The exit status after a trap.
pub const TRAPPED: u8 = 120;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this code; 0 after a return.
    Exit(u32),
    /// It trapped, at this offset of the text.
    Trap(Trap, u32),
    /// The time was over.
    TimeOut,
}

impl Ended {
    /// The exit status for the shell: the program's own (the lowest eight bits, as for any program of Linux),
    /// [`TRAPPED`] after a trap, 124 after the limit of time.
    pub fn status(&self) -> u8 {
        match self {
            Ended::Exit(code) => *code as u8,
            Ended::Trap(..) => TRAPPED,
            Ended::TimeOut => 124,
        }
    }

    /// What a user should be told: nothing of a program that ended by itself.
    pub fn message(&self) -> Option<String> {
        match self {
            Ended::Exit(_) => None,
            Ended::Trap(trap, offset) => Some(format!("trap at {offset:#x}: {trap}")),
            Ended::TimeOut => Some("the time limit was reached".into()),
        }
    }
}

/// Why a program trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// An access found no memory.
    Memory,
    /// A division has no result.
    Division,
    /// Anything else, such as `unreachable`, a wrong index or type of a function, or the end of the stack.
    Other,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trap::Memory => "an access outside of its memory",
            Trap::Division => "a division by zero, or whose result is too large",
            Trap::Other => "unreachable code, a wrong index or type, or the end of its stack",
        })
    }
}

/// The function that an import names.
fn bind(import: &Import<'_>) -> Result<Function, String> {
    let Import { module, name, signature } = import;
    if *module != MODULE {
        return Err(format!("import {module}.{name}: there are only functions of {MODULE}"));
    }
    let function = Function::by_name(name)
        .ok_or_else(|| format!("import {name}: WASI has no such function"))?;
    let letter = |t: &Type| if *t == Type::I32 { 'i' } else { 'I' };
    let known = function.signature();
    let mut text: String = known.parameters.iter().map(letter).collect();
    text.push(':');
    text.extend(known.result.then_some('i'));
    if *signature != text {
        return Err(format!("import {name}: its type is {text}, not {signature}"));
    }
    Ok(function)
}

/// The arguments of a call: registers, then the call area.
fn arguments(call: &Call<'_>, count: usize) -> [u64; PARAMETERS] {
    let mut all = [0; PARAMETERS];
    all[..REGISTERS].copy_from_slice(&call.arguments);
    for (n, argument) in all.iter_mut().enumerate().take(count).skip(REGISTERS) {
        let slot = call.slot(n - REGISTERS);
        *argument = slot.iter().take(8).rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    }
    all
}

/// A command of WASI: a compiled program, checked and loaded.
pub struct Command<'a, E = Image<'a>> {
    instance: Instance<'a, E>,
    /// The number of its function [`MAIN`].
    main: u32,
    /// Its imports. The one that makes memories longer is the instance's own.
    functions: Vec<Option<Function>>,
}

impl<'a> Command<'a> {
    /// Checks a compiled program and loads it, for a host that reserves `reserved` bytes for the region.
    ///
    /// # Errors
    ///
    /// The checker refuses the file, or an error of [`Self::on`].
    pub fn load(file: &'a [u8], reserved: u64, arena: &mut Arena) -> Result<Self, String> {
        let (verdict, faults) = verify(file, host(file, reserved), arena)
            .map_err(|error| format!("refused: {error}"))?;
        Command::on(verdict.program, |_| Image::load_gated(verdict, faults))
    }
}

impl<'a, E: Engine> Command<'a, E> {
    /// Loads a compiled program that another engine checks and executes. `engine` gets the functions that its imports
    /// name, by their numbers. The one that makes memories longer has none.
    ///
    /// # Errors
    ///
    /// The file is malformed, or an error of [`Self::on`].
    pub fn load_on(
        file: &'a [u8],
        reserved: u64,
        engine: impl FnOnce(&[Option<Function>]) -> io::Result<E>,
    ) -> Result<Self, String> {
        let program = Program::parse(file, host(file, reserved)).map_err(|e| e.to_string())?;
        Command::on(program, engine)
    }

    /// # Errors
    ///
    /// The program was not compiled from WebAssembly; it is not a command of WASI; the region's address is taken;
    /// memory is short; or `engine` fails.
    fn on(
        program: Program<'a>,
        engine: impl FnOnce(&[Option<Function>]) -> io::Result<E>,
    ) -> Result<Self, String> {
        let reserved = program.host().reserved;
        let manifest =
            Manifest::parse(program.rest(), reserved).map_err(|error| error.to_string())?;
        let main = manifest
            .exports()
            .find(|export| export.kind == Kind::Function && export.name == MAIN)
            .ok_or("it exports no function _start, so it is not a command of WASI")?;
        if main.signature != ":" {
            return Err(format!("the type of _start is {}, not :", main.signature));
        }
        let is_own = |import: &Import<'_>| {
            (import.module, import.name)
                == (kyozon_typed_manifest::MODULE, kyozon_typed_manifest::GROW)
        };
        if manifest.imports().filter(is_own).count() > 1 {
            return Err("two imports make memories longer".into());
        }
        let functions: Vec<_> = manifest
            .imports()
            .map(|import| if is_own(&import) { Ok(None) } else { bind(&import).map(Some) })
            .collect::<Result<_, _>>()?;
        let instance = Instance::on(program, || engine(&functions))
            .map_err(|error| format!("cannot load the program: {error}"))?;
        Ok(Command { instance, main: main.number, functions })
    }

    /// Runs it with an interface. Ends it after `limit`, if that is not zero.
    pub fn run<H>(self, wasi: &mut Wasi<'_, H>, limit: Duration) -> Ended
    where
        H: kyozon_typed_wasi::Host<Memory = [u8]>,
    {
        self.run_watched(wasi, limit, |_| ())
    }

    /// As [`Self::run`]. `watch` sees the interface before the program runs, and after each call that it answered.
    pub fn run_watched<H>(
        mut self,
        wasi: &mut Wasi<'_, H>,
        limit: Duration,
        mut watch: impl FnMut(&mut Wasi<'_, H>),
    ) -> Ended
    where
        H: kyozon_typed_wasi::Host<Memory = [u8]>,
    {
        let code = Cell::new(0);
        watch(wasi);
        let mut calls = |call: &mut Call<'_>| {
            let function = self.functions[call.import]?;
            let arguments = arguments(call, function.signature().parameters.len());
            let answer = wasi.call(function, &arguments, call.memory(0).unwrap_or_default());
            watch(wasi);
            match answer {
                Ok(result) => Some(u64::from(result)),
                Err(Exit(number)) => {
                    code.set(number);
                    None
                }
            }
        };
        let ended = match self.instance.start(0, limit, &mut calls) {
            Outcome::Returned(_) => self.instance.call(self.main, &[], limit, &mut calls),
            other => other,
        };
        match ended {
            Outcome::Returned(_) => Ended::Exit(0),
            Outcome::Left => Ended::Exit(code.get()),
            Outcome::Fault(at) => Ended::Trap(Trap::Memory, at),
            Outcome::Division(at) => Ended::Trap(Trap::Division, at),
            Outcome::Trap(at) | Outcome::Alignment(at) => Ended::Trap(Trap::Other, at),
            Outcome::TimeOut => Ended::TimeOut,
        }
    }
}

/// Loads a compiled program as [`Command::load`] does, and runs it in this process. Ends it after `limit`, if that is
/// not zero.
///
/// # Errors
///
/// Those of [`Command::load`], and the start is wrong.
pub fn run(file: &[u8], reserved: u64, start: Start, limit: Duration) -> Result<Ended, String> {
    let mut arena = Arena::default();
    let command = Command::load(file, reserved, &mut arena)?;
    let host = Process::ending(is_due);
    let ended = start.run_on(host, |handle| handle, |wasi| command.run(wasi, limit));
    ended.map_err(|error| error.to_string())
}

/// A host with the region that a file was made for.
fn host(file: &[u8], reserved: u64) -> Host {
    let bytes = file.get(16..24).and_then(|bytes| bytes.try_into().ok());
    let region = bytes.map_or(0, u64::from_le_bytes);
    Host { region, reserved, indirect_branches: true, tracking: false }
}
