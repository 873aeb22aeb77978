//! execve(2). The kernel of the library ends with the process's memory, so this command starts once more, with the new
//! program as its argument:
//!
//! - in the process that has the library, after the images are unmounted, with the same options;
//! - in a forked process, which has no library, with `--guard`: paths below mount points then fail. Without that, they
//!   would silently be the host's, and `cd /mnt && rm -rf *` in a shell would delete the wrong files.

use crate::state::State;
use crate::{descriptors, host, library, paths, process, trap, vfork, Mount, Options, Owned};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// This command.
const SELF: &std::ffi::CStr = c"/proc/self/exe";

/// What the next command needs of this one's options.
struct Command {
    /// Options for a process with the library, and for one without.
    with_library: Vec<CString>,
    guard: Vec<CString>,
    /// A second program, which cannot start again, is in the process.
    beside: bool,
}

static COMMAND: OnceLock<Command> = OnceLock::new();

fn text(bytes: &[u8]) -> std::io::Result<CString> {
    CString::new(bytes).map_err(std::io::Error::other)
}

/// Notes the options, before the program can change the working directory.
pub fn remember(options: &Options) -> std::io::Result<()> {
    let mut with_library = vec![text(b"kyozon-linux-exec")?];
    let kernel = std::fs::canonicalize(&options.kernel).unwrap_or_else(|_| options.kernel.clone());
    with_library.extend([text(b"--kernel")?, text(kernel.as_os_str().as_bytes())?]);
    let memory = format!("--memory={}", options.memory >> 20);
    with_library.push(text(memory.as_bytes())?);
    let mut common = Vec::new();
    if !options.rewrite {
        common.push(text(b"--no-rewrite")?);
    }
    for Mount { image, point, kind, read_only } in &options.mounts {
        let image = std::fs::canonicalize(image).unwrap_or_else(|_| image.clone());
        let options = if *read_only { b",ro".as_slice() } else { b"" };
        let (image, point) = (image.as_os_str().as_bytes(), point.as_os_str().as_bytes());
        common.push(text(b"--mount")?);
        common.push(text(&[image, b":", point, b":", kind.as_bytes(), options].concat())?);
    }
    let Owned { credentials, ipc } = options.owned;
    for (moves, class) in [(credentials, c"credentials"), (ipc, c"ipc")] {
        if moves {
            with_library.extend([c"--library".into(), class.into()]);
        }
    }
    let guard = [vec![text(b"kyozon-linux-exec")?, text(b"--guard")?], common.clone()].concat();
    with_library.extend(common);
    if options.verbose {
        with_library.push(text(b"--verbose")?);
    }
    COMMAND.get_or_init(|| Command { with_library, guard, beside: options.beside.is_some() });
    Ok(())
}

/// Executes the program at the host's `path`. Returns only an error, or [`None`] if the host shall do it alone.
pub fn execute(state: &State, path: &CString, argv: u64, envp: u64) -> Option<i64> {
    vfork::show();
    let command = COMMAND.get()?;
    let forked = !library::present();
    if forked && (!paths::any() || trap::traced()) {
        return None;
    }
    if descriptors::any(true) {
        return Some(process::refuse(
            "execve: the new program would inherit descriptors of the library: set close-on-exec",
        ));
    }
    if !forked && command.beside {
        return Some(process::refuse("execve: the program of --beside would end"));
    }
    if descriptors::limit() < descriptors::LEAST_LIMIT {
        let what = "execve: the limit of open files (RLIMIT_NOFILE) is too low for the library";
        return Some(process::refuse(what));
    }
    if let Err(error) = executable(path) {
        return Some(error);
    }
    let mut words: Vec<CString> =
        if forked { &command.guard } else { &command.with_library }.clone();
    for (option, value) in
        [("--directory", paths::cwd()), ("--executable", Some(path.to_bytes().to_vec()))]
    {
        if let Some(value) = value {
            words.extend([CString::new(option).ok()?, CString::new(value).ok()?]);
        }
    }
    words.push(c"--".into());
    let mut vector: Vec<u64> = words.iter().map(|word| word.as_ptr() as u64).collect();
    match arguments(argv) {
        Ok(arguments) => vector.extend(arguments),
        Err(error) => return Some(error),
    }
    vector.push(0);
    if !forked {
        descriptors::close_all(state);
        library::own_call(state, libc::SYS_chdir, &[c"/".as_ptr() as u64]);
        process::unmount();
    }
    let error = host::call(libc::SYS_execve, &[SELF.as_ptr() as u64, vector.as_ptr() as u64, envp]);
    if !forked {
        // There is nothing to return to: the images are unmounted.
        let error = std::io::Error::from_raw_os_error(-error as i32);
        eprintln!("kyozon-linux exec: execve: {}: {error}", path.to_string_lossy());
        host::call(libc::SYS_exit_group, &[crate::CANNOT_START as u64]);
    }
    Some(error)
}

/// The addresses of the program's arguments. A program without any gets an empty one, as from Linux 5.18 on.
fn arguments(mut argv: u64) -> Result<Vec<u64>, i64> {
    let mut addresses = Vec::new();
    while argv != 0 {
        match host::read_value::<u64>(argv)? {
            0 => break,
            address => addresses.push(address),
        }
        argv += 8;
    }
    if addresses.is_empty() {
        addresses.push(c"".as_ptr() as u64);
    }
    Ok(addresses)
}

/// Finds the errors that execve(2) would, because nobody gets them later.
fn executable(path: &CString) -> Result<(), i64> {
    use std::os::unix::fs::FileExt;
    let check = |result: i64| if result < 0 { Err(result) } else { Ok(()) };
    let cwd = libc::AT_FDCWD as u64;
    let address = path.as_ptr() as u64;
    check(host::call(
        libc::SYS_faccessat2,
        &[cwd, address, libc::X_OK as u64, libc::AT_EACCESS as u64],
    ))?;
    let os = |error: std::io::Error| -i64::from(error.raw_os_error().unwrap_or(libc::EIO));
    let file = std::fs::File::open(std::ffi::OsStr::from_bytes(path.to_bytes())).map_err(os)?;
    if !file.metadata().map_err(os)?.is_file() {
        return Err(-i64::from(libc::EACCES));
    }
    let mut header = [0; 20];
    let bytes = file.read_at(&mut header, 0).map_err(os)?;
    let elf = header.starts_with(b"\x7fELF\x02") && header[18..20] == [libc::EM_X86_64 as u8, 0];
    if header[..bytes].starts_with(b"#!") || elf {
        Ok(())
    } else {
        Err(-i64::from(libc::ENOEXEC))
    }
}
