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
use rustix::mount::{mount, MountFlags};
use rustix::process::{kill_process_group, Pid, Signal};
use rustix::system::{finit_module, reboot, uname, RebootCommand};
use rustix::termios::{tcgetattr, tcsetattr, OptionalActions};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
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
        Command::new("/bin/setsid").args(["-c", "/bin/sh", "-l"]).env("PATH", "/bin").status()?;
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
        Request::PowerOff => unreachable!("handled by the caller"),
    }
    send(output, &Reply::Done { status, timed_out, tsc_start, tsc_end: tsc() }, b"")
}

fn run(script: &str, stdin: &[u8], limit: Duration, output: &mut File) -> Result<(i32, bool)> {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/bin")
        .env("HOME", "/root")
        // Words of the kernel's command line that are meant for the command under test.
        .envs(std::env::vars().filter(|(name, _)| name.starts_with("KYOZON_")))
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
    let timed_out = forward(&mut child, Instant::now() + limit, output)?;
    if timed_out {
        kill_process_group(Pid::from_child(&child), Signal::KILL)?;
    }
    let status = child.wait()?;
    Ok((status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)), timed_out))
}

/// Forwards the child's output until the child ends, or until `deadline`: then it returns true. A process that the
/// child left behind with its output open does not matter: the child's own end counts.
fn forward(child: &mut Child, deadline: Instant, output: &mut File) -> Result<bool> {
    let (mut out, mut err) =
        (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let mut open = [true, true];
    let mut buffer = vec![0; 64 << 10];
    loop {
        let ended = child.try_wait()?.is_some();
        if ended && open == [false, false] {
            return Ok(false);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() && !ended {
            return Ok(true);
        }
        let wait = if ended { Duration::ZERO } else { left.min(Duration::from_millis(20)) };
        let events = if open[0] { PollFlags::IN } else { PollFlags::empty() };
        let events_err = if open[1] { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = [PollFd::new(&out, events), PollFd::new(&err, events_err)];
        if open == [false, false] {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            let timeout = wait.try_into().expect("at most 20 ms");
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) if ended => return Ok(false),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let ready = [0, 1].map(|i| open[i] && !fds[i].revents().is_empty());
        for (index, stream) in [&mut out as &mut dyn Read, &mut err].into_iter().enumerate() {
            if ready[index] {
                match stream.read(&mut buffer)? {
                    0 => open[index] = false,
                    n => send(output, &Reply::Output { stream: index as u8 + 1 }, &buffer[..n])?,
                }
            }
        }
    }
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
