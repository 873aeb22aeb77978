//! The first state of a program: arguments, environment and auxiliary vector on its stack, as the System V ABI for
//! x86-64 says (3.4.1).

use crate::elf::{self, Placed};
use crate::program::Program;
use crate::state::{Registers, State};
use anyhow::{ensure, Context, Result};
use kyozon_libc::seam::AT_KYOZON;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// linux/auxvec.h.
const AT_RSEQ_FEATURE_SIZE: u64 = 27;
const AT_RSEQ_ALIGN: u64 = 28;
const AT_MINSIGSTKSZ: u64 = 51;

/// Values that a program gets as this process got them.
const PASSED: [u64; 14] = [
    libc::AT_PAGESZ,
    libc::AT_CLKTCK,
    libc::AT_FLAGS,
    libc::AT_UID,
    libc::AT_EUID,
    libc::AT_GID,
    libc::AT_EGID,
    libc::AT_SECURE,
    libc::AT_HWCAP,
    libc::AT_HWCAP2,
    libc::AT_SYSINFO_EHDR,
    AT_RSEQ_FEATURE_SIZE,
    AT_RSEQ_ALIGN,
    AT_MINSIGSTKSZ,
];

/// The file of a command: as it is if it has a slash, otherwise from `PATH`.
pub fn find(command: &Path) -> Result<PathBuf> {
    if command.as_os_str().as_bytes().contains(&b'/') {
        return command.canonicalize().with_context(|| command.display().to_string());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(command))
        .find(|file| file.is_file())
        .with_context(|| format!("{}: not found in PATH", command.display()))
}

/// Gives the calling thread, which will run the command, the name that execve(2) gives it.
pub fn name(command: &Path) {
    if let Ok(name) = CString::new(command.file_name().unwrap_or_default().as_bytes()) {
        // SAFETY: the string ends with a zero; the kernel takes its first 15 bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Scripts whose interpreters are scripts, as execve(2) has it.
const SCRIPTS: usize = 4;

/// A thread that will start the program `arguments[0]`, or the file `executable` by that name.
pub fn program(arguments: &[OsString], executable: Option<&Path>) -> Result<Box<State>> {
    let mut arguments = arguments.to_vec();
    let mut path = match executable {
        Some(path) => path.to_path_buf(),
        None => find(Path::new(&arguments[0]))?,
    };
    let name = CString::new(path.as_os_str().as_bytes())?;
    for _ in 0..SCRIPTS {
        let Some(interpreter) = interpreter(&path)? else { break };
        arguments.splice(..1, [interpreter.clone(), vec![path.into_os_string()]].concat());
        path = interpreter[0].clone().into();
    }
    let placed = elf::place(&path)?;
    let linker = placed.interpreter.as_deref().map(elf::place).transpose()?;
    let stack = build(&name, &arguments, &placed, linker.as_ref())?;
    let entry = linker.as_ref().map_or(placed.entry, |linker| linker.entry);
    let registers = Registers { rsp: stack, rip: entry, ..Registers::default() };
    let whole = path.canonicalize().unwrap_or(path);
    let whole = CString::new(whole.into_os_string().into_vec())?;
    Ok(State::new(Arc::new(Program::new(whole)?), registers, 0))
}

/// The interpreter of a script, and its argument.
fn interpreter(path: &Path) -> Result<Option<Vec<OsString>>> {
    /// BINPRM_BUF_SIZE of linux/binfmts.h.
    const LINE: u64 = 256;
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut line = Vec::new();
    file.take(LINE).read_to_end(&mut line).with_context(|| path.display().to_string())?;
    let Some(line) = line.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let end = line.iter().position(blank).unwrap_or(line.len());
    let (program, argument) = line.split_at(end);
    ensure!(!program.is_empty(), "{}: the script names no interpreter", path.display());
    let mut words = vec![OsString::from_vec(program.to_vec())];
    if !argument.is_empty() {
        words.push(OsString::from_vec(argument.trim_ascii().to_vec()));
    }
    Ok(Some(words))
}

/// Writes from the stack's end downwards.
struct Stack(u64);

impl Stack {
    fn push(&mut self, bytes: &[u8]) -> u64 {
        self.0 -= bytes.len() as u64;
        // SAFETY: the stack was mapped for this and has megabytes; the system limits arguments and environment to less.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0 as *mut u8, bytes.len()) };
        self.0
    }

    fn string(&mut self, text: &[u8]) -> u64 {
        self.push(&[0]);
        self.push(text)
    }
}

fn build(
    name: &CString,
    arguments: &[OsString],
    placed: &Placed,
    linker: Option<&Placed>,
) -> Result<u64> {
    let mut stack = Stack(elf::stack()?);
    let mut random = [0u8; 16];
    // SAFETY: the buffer is valid.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    let file = stack.string(name.as_bytes());
    let platform = stack.string(b"x86_64");
    let random = stack.push(&random);
    let environment: Vec<u64> = std::env::vars_os()
        .map(|(name, value)| stack.string(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect();
    let arguments: Vec<u64> = arguments.iter().map(|text| stack.string(text.as_bytes())).collect();

    let mut words = vec![arguments.len() as u64];
    words.extend(arguments);
    words.push(0);
    words.extend(environment);
    words.push(0);
    for (key, value) in [
        (libc::AT_PHDR, placed.headers),
        (libc::AT_PHENT, size_of::<libc::Elf64_Phdr>() as u64),
        (libc::AT_PHNUM, placed.header_count),
        (libc::AT_BASE, linker.map_or(0, |linker| linker.base)),
        (libc::AT_ENTRY, placed.entry),
        (libc::AT_EXECFN, file),
        (libc::AT_PLATFORM, platform),
        (libc::AT_RANDOM, random),
        // Other programs ignore it.
        (AT_KYOZON, crate::seam::address()),
    ] {
        words.extend([key, value]);
    }
    for key in PASSED {
        // SAFETY: only looks the key up.
        words.extend([key, unsafe { libc::getauxval(key) }]);
    }
    words.extend([libc::AT_NULL, 0]);
    stack.0 = (stack.0 - 8 * words.len() as u64) / 16 * 16 + 8 * words.len() as u64;
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(stack.push(&words))
}
