//! PID 1 of a guest: mounts the file systems that a shell needs, loads the drivers of its channel, serves requests.
//!
//! With `/kyozon/batch` in the initramfs, requests are read from there and answers go to the second serial line:
//! nothing then enters the guest while it runs. Otherwise both use the virtio port `kyozon.agent`. With
//! `kyozon.shell` on the kernel command line, the agent starts a shell on the console instead.
//!
//! `/init crash-kernel KERNEL INITRD COMMAND-LINE`, in a running guest, loads the kernel that takes over after a panic.

use anyhow::{Context, Result};
use kyozon_lab::protocol::{receive, send, Reply, Request, MAX_PAYLOAD, PREAMBLE, VERSION};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::mount::{mount, MountFlags};
use rustix::process::{kill_process_group, wait, Pid, Signal, WaitOptions, WaitStatus};
use rustix::system::{finit_module, reboot, uname, RebootCommand};
use rustix::termios::{tcgetattr, tcsetattr, OptionalActions};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BATCH: &str = "/kyozon/batch";
const MODULES: &str = "/kyozon/modules";
const PORT_NAME: &str = "kyozon.agent";

fn main() {
    let started = tsc();
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, kernel, initrd, command_line] = words.as_slice() {
        if word == "crash-kernel" {
            if let Err(error) = load_crash_kernel(kernel, initrd, command_line) {
                eprintln!("crash-kernel: {error:#}");
                std::process::exit(1);
            }
            return;
        }
    }
    if let Err(error) = serve(started) {
        eprintln!("kyozon-agent: {error:#}");
    }
    power_off();
}

fn tsc() -> u64 {
    // SAFETY: RDTSC has no precondition; the kernel does not disable it for PID 1.
    unsafe { core::arch::x86_64::_rdtsc() }
}

fn power_off() -> ! {
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        std::thread::park();
    }
}

fn serve(started: u64) -> Result<()> {
    for (kind, target) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")]
    {
        fs::create_dir_all(target)?;
        mount(kind, target, kind, MountFlags::empty(), None)
            .with_context(|| format!("mount {target}"))?;
    }
    // A kernel may be built without debugfs.
    let _ = mount("debugfs", "/sys/kernel/debug", "debugfs", MountFlags::empty(), None);
    load_modules()?;
    if fs::read_to_string("/proc/cmdline")?.split_whitespace().any(|word| word == "kyozon.shell") {
        let mut shell = Command::new("/bin/setsid");
        let shell = shell.args(["-c", "/bin/sh", "-l"]).env("PATH", "/bin").spawn()?;
        wait_for(Pid::from_child(&shell))?;
        return Ok(());
    }
    let (mut input, mut output): (Box<dyn Read>, File) = match File::open(BATCH) {
        Ok(batch) => (Box::new(batch), serial_line("/dev/ttyS1")?),
        Err(_) => {
            let port = open_port()?;
            (Box::new(port.try_clone()?), port)
        }
    };
    output.write_all(PREAMBLE)?;
    let release = uname().release().to_string_lossy().into_owned();
    send(&mut output, &Reply::Hello { version: VERSION, release, tsc: started }, b"")?;
    while let Some((request, payload)) = receive::<Request>(&mut input)? {
        if request == Request::PowerOff {
            break;
        }
        if let Err(error) = carry_out(&request, &payload, &mut output) {
            send(&mut output, &Reply::Failed { message: format!("{error:#}") }, b"")?;
        }
    }
    Ok(())
}

fn carry_out(request: &Request, payload: &[u8], output: &mut File) -> Result<()> {
    let tsc_start = tsc();
    let (mut status, mut timed_out) = (0, false);
    match request {
        Request::Run { script, timeout_ms } => {
            (status, timed_out) = run(script, payload, Duration::from_millis(*timeout_ms), output)?;
        }
        Request::Put { path, mode } => {
            if let Some(folder) = Path::new(path).parent() {
                fs::create_dir_all(folder)
                    .with_context(|| format!("create {}", folder.display()))?;
            }
            fs::write(path, payload).with_context(|| format!("write {path}"))?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
        }
        Request::Get { path } => {
            let contents = fs::read(path).with_context(|| format!("read {path}"))?;
            anyhow::ensure!(
                contents.len() <= MAX_PAYLOAD,
                "{path}: {} bytes are more than {MAX_PAYLOAD}",
                contents.len()
            );
            send(output, &Reply::Output { stream: 1 }, &contents)?;
        }
        Request::Seed => seed(payload).context("mix in random numbers")?,
        Request::PowerOff => unreachable!("handled by the caller"),
    }
    send(output, &Reply::Done { status, timed_out, tsc_start, tsc_end: tsc() }, b"")
}

/// Mixes `random` into the kernel's pool, from which it takes a new key at once.
fn seed(random: &[u8]) -> Result<()> {
    /// `_IO('R', 7)`, random(4).
    const RNDRESEEDCRNG: libc::c_ulong = 0x5207;
    let mut pool = OpenOptions::new().write(true).open("/dev/urandom")?;
    pool.write_all(random)?;
    // SAFETY: the file is open, and this request has no argument.
    let answer = unsafe { libc::ioctl(pool.as_raw_fd(), RNDRESEEDCRNG) };
    anyhow::ensure!(answer == 0, "RNDRESEEDCRNG: {}", std::io::Error::last_os_error());
    Ok(())
}

fn run(script: &str, stdin: &[u8], limit: Duration, output: &mut File) -> Result<(i32, bool)> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/bin")
        .env("HOME", "/root")
        .current_dir("/root");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("start /bin/sh")?;
    let mut pipe = child.stdin.take().expect("piped");
    if stdin.is_empty() {
        drop(pipe);
    } else {
        let stdin = stdin.to_vec();
        std::thread::spawn(move || pipe.write_all(&stdin));
    }
    if let Some(status) = forward(&mut child, Instant::now() + limit, output)? {
        return Ok((status, false));
    }
    let pid = Pid::from_child(&child);
    kill_process_group(pid, Signal::KILL)?;
    Ok((wait_for(pid)?, true))
}

/// Forwards the child's output until the child ends, and returns its status, or none at `deadline`. A process that the
/// child left behind with its output open does not matter: the child's own end counts.
fn forward(child: &mut Child, deadline: Instant, output: &mut File) -> Result<Option<i32>> {
    let pid = Pid::from_child(child);
    let out = OwnedFd::from(child.stdout.take().expect("piped"));
    let err = OwnedFd::from(child.stderr.take().expect("piped"));
    let mut open = vec![(1, File::from(out)), (2, File::from(err))];
    let mut status = None;
    let mut buffer = vec![0; 64 << 10];
    loop {
        status = status.or(reap(pid)?);
        if status.is_some() && open.is_empty() {
            return Ok(status);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() && status.is_none() {
            return Ok(None);
        }
        let wait = match (status, open.is_empty()) {
            (Some(_), _) => Duration::ZERO,
            (None, true) => Duration::from_millis(1),
            (None, false) => left.min(Duration::from_millis(20)),
        };
        let timeout = wait.try_into().expect("at most 20 ms");
        let mut fds: Vec<_> =
            open.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) if status.is_some() => return Ok(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        // One whose other end is closed would be ready for ever.
        let mut still_open = Vec::new();
        for ((stream, mut pipe), ready) in open.into_iter().zip(ready) {
            let length = if ready { pipe.read(&mut buffer)? } else { 0 };
            if length > 0 {
                send(output, &Reply::Output { stream }, &buffer[..length])?;
            }
            if length > 0 || !ready {
                still_open.push((stream, pipe));
            }
        }
        open = still_open;
    }
}

/// Takes the statuses of all processes that have ended, also of those whose parents have: nobody else does, and each
/// would count as a task for ever. Returns that of `child` if it is among them.
fn reap(child: Pid) -> Result<Option<i32>> {
    let mut of_child = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => of_child = Some(code(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(of_child),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until `child` has ended, and returns its status.
fn wait_for(child: Pid) -> Result<i32> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Ok(code(status)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The status as a shell shows it.
fn code(status: WaitStatus) -> i32 {
    status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0))
}

/// Loads `/kyozon/modules/*` in the order of their names: the host has sorted them by dependency.
fn load_modules() -> Result<()> {
    let Ok(directory) = fs::read_dir(MODULES) else {
        return Ok(());
    };
    let mut paths = directory.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let file = File::open(&path)?;
        finit_module(&file, &CString::default(), 0)
            .with_context(|| format!("load {}", path.display()))?;
    }
    Ok(())
}

/// kexec_file_load(2), for which neither libc nor rustix has a wrapper.
fn load_crash_kernel(kernel: &str, initrd: &str, command_line: &str) -> Result<()> {
    const KEXEC_FILE_ON_CRASH: libc::c_ulong = 2;
    let (kernel, initrd) = (File::open(kernel)?, File::open(initrd)?);
    let line = CString::new(command_line)?;
    let bytes = line.as_bytes_with_nul().len();
    // SAFETY: both files are open, and `line` outlives the call and has `bytes` bytes including its final zero.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_kexec_file_load,
            kernel.as_raw_fd(),
            initrd.as_raw_fd(),
            bytes,
            line.as_ptr(),
            KEXEC_FILE_ON_CRASH,
        )
    };
    anyhow::ensure!(answer == 0, "kexec_file_load: {}", std::io::Error::last_os_error());
    Ok(())
}

fn open_port() -> Result<File> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim_end() == PORT_NAME {
                let path = format!("/dev/{}", entry.file_name().to_string_lossy());
                return OpenOptions::new().read(true).write(true).open(&path).with_context(|| path);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    anyhow::bail!("no virtio port named {PORT_NAME}")
}

fn serial_line(path: &str) -> Result<File> {
    let line = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(0o400)
        .open(path)
        .with_context(|| path.to_owned())?;
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    settings.set_speed(115_200)?;
    tcsetattr(&line, OptionalActions::Now, &settings)?;
    Ok(line)
}
