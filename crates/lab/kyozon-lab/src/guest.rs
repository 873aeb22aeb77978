//! A running guest: commands and files, in both directions, over a virtio port.

use crate::booted::State;
use crate::deaf::{DeafCpu, Moment};
use crate::emulator::{self, Control, Emulator};
use crate::protocol::{self, receive, send, Reply, Request};
use crate::spec::{started_cpus, Spec};
use crate::{cache, process};
use anyhow::{bail, ensure, Context, Result};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Kernel modules that the channel needs.
pub const CHANNEL: [&str; 2] = ["virtio_pci", "virtio_console"];
/// Time limit of a command for which the caller gives none.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Extra time for the emulator on a loaded machine, beyond a command's own limit.
const SLACK: Duration = Duration::from_secs(60);

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// Exit status; 128 + signal for a command that was killed.
    pub status: i32,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// Standard output, or a file's contents.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Time-stamp counter before. In a repeatable run one tick is one instruction.
    pub tsc_start: u64,
    /// Time-stamp counter after.
    pub tsc_end: u64,
}

impl Output {
    /// Time-stamp counter ticks that the command took: instructions in a repeatable run.
    pub fn ticks(&self) -> u64 {
        self.tsc_end.saturating_sub(self.tsc_start)
    }

    /// Standard output if the status is 0, else an error.
    pub fn expect_success(&self) -> Result<String> {
        let stderr = String::from_utf8_lossy(&self.stderr);
        ensure!(!self.timed_out, "the command did not end in time");
        ensure!(
            self.status == 0,
            "the command ended with status {}: {}",
            self.status,
            process::last_line(&stderr).unwrap_or("no reason given")
        );
        Ok(String::from_utf8_lossy(&self.stdout).into_owned())
    }
}

/// Output of a guest's serial lines, from start to end.
#[derive(Debug)]
pub struct Ended {
    /// The kernel's console.
    pub console: String,
    /// The cokernel's line, port 0x3e8.
    pub cokernel: String,
}

/// A guest that has booted. Dropping the handle kills it.
#[derive(Debug)]
pub struct Guest {
    emulator: Emulator,
    port: UnixStream,
    /// Time-stamp counter at the agent's first instruction.
    pub booted_tsc: u64,
}

impl Guest {
    /// Boots and waits for the agent.
    ///
    /// With several CPUs, QEMU's TCG occasionally lets one of them execute the breakpoint that Linux places while it
    /// patches its own code, and seldom leaves an address in EFLAGS after `cmpxchg16b`, which ends in a double fault.
    /// If that ends a boot, only the stock kernel has run by then, so the boot is tried again.
    pub fn boot(spec: &Spec) -> Result<Self> {
        let known =
            |error: &str| ["Oops: int3", "Oops: double fault"].iter().any(|e| error.contains(e));
        match Self::boot_once(spec) {
            Err(error) if spec.smp > 1 && known(&error.to_string()) => {
                eprintln!("{error:#}; booting again");
                Self::boot_once(spec)
            }
            outcome => outcome,
        }
    }

    fn boot_once(spec: &Spec) -> Result<Self> {
        let (mut emulator, listener) = start(spec, spec.initramfs(&CHANNEL)?.pack(), &[])?;
        let deadline = Instant::now() + spec.boot_limit;
        match greet(&listener, &mut emulator, deadline) {
            Ok((port, release, booted_tsc)) if release == spec.kernel.release => {
                Ok(Self { emulator, port, booted_tsc })
            }
            Ok((_, release, _)) => bail!("{}: it runs kernel {release} instead", spec.name()),
            Err(_) if Instant::now() < deadline => Err(emulator.fail("it did not boot")),
            Err(_) => {
                Err(emulator
                    .fail(&format!("it did not boot within {} s", spec.boot_limit.as_secs())))
            }
        }
    }

    /// Starts from `state`, which has none of `spec`'s files, and puts them into the guest.
    pub(crate) fn resume(spec: &Spec, state: &State) -> Result<Self> {
        let stream = format!("exec:exec cat {}", state.file.display());
        let (mut emulator, listener) = start(spec, Vec::new(), &["-incoming", &stream])?;
        let deadline = Instant::now() + spec.boot_limit;
        let port = accept(&listener, &mut emulator, deadline)
            .map_err(|_| emulator.fail("it did not start from a saved state"))?;
        let mut guest = Self { emulator, port, booted_tsc: state.booted_tsc };
        // Every guest of the state would draw the same random numbers.
        let mut seed = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut seed)?;
        guest.ask(&Request::Seed, &seed, spec.boot_limit)?;
        for (path, mode, contents) in &spec.files {
            guest.put(path, *mode, contents)?;
        }
        Ok(guest)
    }

    /// Writes the state of the machine to the file `to`. The guest runs on in the meantime, and must not be used after.
    pub(crate) fn save(&self, to: &Path) -> Result<()> {
        let mut control = self.control()?;
        control.execute("migrate-set-parameters", json!({ "max-bandwidth": 4u64 << 30 }))?;
        let stream = format!("exec:exec cat >{}", to.display());
        control.execute("migrate", json!({ "uri": stream }))?;
        let deadline = Instant::now() + COMMAND_LIMIT;
        loop {
            let answer = control.execute("query-migrate", json!({}))?;
            match answer["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => bail!("QEMU did not: {answer}"),
                _ => ensure!(Instant::now() < deadline, "QEMU has not ended after a minute"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// QEMU's arguments for a guest of `spec`, but for its files.
    pub(crate) fn arguments(spec: &Spec, initrd: &Path) -> Result<Vec<String>> {
        let started = started_cpus(&spec.kernel.series, spec.smp, &spec.devices);
        ensure!(
            started == spec.smp,
            "Linux {} does not start {} CPUs by the instruction clock (-icount): give it {started}",
            spec.kernel.series,
            spec.smp
        );
        // On a busy host, Linux sees too few ticks in the moment in which it tries its timer, and panics.
        emulator::arguments(spec, initrd, &spec.command_line("no_timer_check"))
    }

    /// Runs a shell script, at most [`COMMAND_LIMIT`].
    pub fn run(&mut self, script: &str) -> Result<Output> {
        self.run_for(script, COMMAND_LIMIT)
    }

    /// Runs a shell script, at most `limit` of guest time.
    pub fn run_for(&mut self, script: &str, limit: Duration) -> Result<Output> {
        let request = Request::Run { script: script.into(), timeout_ms: limit.as_millis() as u64 };
        self.ask(&request, b"", limit)
    }

    /// As [`Guest::run_for`], and gives `commands` to QEMU's monitor one second after the start.
    pub fn run_with(
        &mut self,
        script: &str,
        limit: Duration,
        commands: &[String],
    ) -> Result<Output> {
        if commands.is_empty() {
            return self.run_for(script, limit);
        }
        let mut control = self.control()?;
        std::thread::scope(|scope| {
            let injected = scope.spawn(move || {
                std::thread::sleep(Duration::from_secs(1));
                commands.iter().try_for_each(|line| match control.monitor(line)?.trim() {
                    "" => Ok(()),
                    answer => bail!("QEMU's monitor answers {line:?} with {answer:?}"),
                })
            });
            let output = self.run_for(script, limit)?;
            injected.join().expect("the thread returns its errors")?;
            Ok(output)
        })
    }

    /// Runs a script that ends when another kernel takes over, such as a crash kernel, and waits for its agent.
    pub fn run_into_restart(&mut self, script: &str, limit: Duration) -> Result<()> {
        let request = Request::Run { script: script.into(), timeout_ms: limit.as_millis() as u64 };
        send(&mut self.port, &request, b"")?;
        self.port.set_read_timeout(Some(limit + SLACK))?;
        match hello(&mut self.port) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.emulator.fail("no other kernel took over")),
        }
    }

    /// Writes a file in the guest.
    pub fn put(&mut self, path: &str, mode: u32, contents: &[u8]) -> Result<()> {
        self.ask(&Request::Put { path: path.into(), mode }, contents, COMMAND_LIMIT).map(drop)
    }

    /// Reads a file in the guest.
    pub fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        Ok(self.ask(&Request::Get { path: path.into() }, b"", COMMAND_LIMIT)?.stdout)
    }

    /// Output of serial line `index` so far; 0 is the kernel's console.
    pub fn serial(&self, index: usize) -> String {
        self.emulator.serial(index)
    }

    /// The file of the kernel's console, which can be read after the guest's end, too.
    pub fn console(&self) -> Result<File> {
        File::open(self.emulator.folder().join("ttyS0")).context("open the console's file")
    }

    /// Writes the guest's memory to the file `to`, as an ELF core. Meanwhile the guest stands still.
    pub fn dump(&self, to: &Path) -> Result<()> {
        let to = std::path::absolute(to)?;
        let place = json!({ "paging": false, "protocol": format!("file:{}", to.display()) });
        self.control()?.execute("dump-guest-memory", place)?;
        Ok(())
    }

    /// QEMU's control channel.
    pub fn control(&self) -> Result<Control> {
        Control::connect(&self.emulator.folder().join("control"))
    }

    /// Whether the emulator has ended.
    pub fn ended(&mut self) -> Result<bool> {
        Ok(self.emulator.ended()?.is_some())
    }

    /// CPU time that the emulator has used on this machine, in steps of 10 ms.
    pub fn emulator_time(&mut self) -> Result<Duration> {
        self.emulator.cpu_time()
    }

    /// Waits until the emulator ends by itself, after a panic or a reboot.
    pub fn wait_for_end(mut self, limit: Duration) -> Result<Ended> {
        match self.emulator.wait(limit)? {
            Some(_) => {
                Ok(Ended { console: self.emulator.serial(0), cokernel: self.emulator.serial(2) })
            }
            None => {
                Err(self.emulator.fail(&format!("it did not end within {} s", limit.as_secs())))
            }
        }
    }

    /// Powers the guest off. What Linux warned of is added to the console, which shows errors only.
    pub fn shutdown(mut self) -> Result<Ended> {
        let warnings = self.run("dmesg | grep -F WARNING: || true")?.expect_success()?;
        send(&mut self.port, &Request::PowerOff, b"").context("ask the guest to power off")?;
        let mut ended = self.wait_for_end(SLACK)?;
        ended.console.push_str(&warnings);
        Ok(ended)
    }

    fn ask(&mut self, request: &Request, payload: &[u8], limit: Duration) -> Result<Output> {
        let deadline = Instant::now() + limit + SLACK;
        let answer = send(&mut self.port, request, payload).and_then(|()| {
            collect(|| {
                let left = deadline.saturating_duration_since(Instant::now());
                ensure!(!left.is_zero(), "no answer in time");
                self.port.set_read_timeout(Some(left))?;
                receive(&mut self.port)
            })
        });
        match answer {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(message)) => bail!("{message}"),
            Err(_) => {
                let control = self.emulator.folder().join("control");
                let mut is_deaf = false;
                let state = || match state(&control) {
                    Ok((text, deaf)) => {
                        is_deaf = deaf;
                        text
                    }
                    Err(error) => format!("\n{error:#}\n"),
                };
                let error = self.emulator.fail_with("it does not answer any more", state);
                Err(if is_deaf { error.context(DeafCpu) } else { error })
            }
        }
    }
}

/// What a guest's CPUs do: their registers, twice, and whether CPU 0 is deaf. In between Linux is asked by the magic
/// keys for its backtraces and waiting tasks, and answers on its console if it can.
fn state(control: &Path) -> Result<(String, bool)> {
    let mut control = Control::connect(control)?;
    let before = moment(&mut control)?;
    for key in ["9", "l", "w"] {
        control.monitor(&format!("sendkey alt-sysrq-{key}"))?;
        std::thread::sleep(Duration::from_secs(1));
    }
    let after = moment(&mut control)?;
    let shown = |Moment { registers, interrupts }: &Moment| format!("{registers}\n{interrupts}");
    let text = format!("\nregisters\n{}\nregisters 3 s later\n{}\n", shown(&before), shown(&after));
    Ok((text, DeafCpu::is_at(&before, &after)))
}

fn moment(control: &mut Control) -> Result<Moment> {
    Ok(Moment {
        registers: control.monitor("info registers -a")?,
        interrupts: control.monitor("info lapic 0")?,
    })
}

/// Gathers the replies to one request: its output, or the agent's reason why there is none.
pub(crate) fn collect(
    mut next: impl FnMut() -> Result<Option<(Reply, Vec<u8>)>>,
) -> Result<Result<Output, String>> {
    let mut output = Output::default();
    loop {
        match next()?.context("the agent closed the channel")? {
            (Reply::Output { stream: 2 }, piece) => output.stderr.extend(piece),
            (Reply::Output { .. }, piece) => output.stdout.extend(piece),
            (Reply::Done { status, timed_out, tsc_start, tsc_end }, _) => {
                return Ok(Ok(Output { status, timed_out, tsc_start, tsc_end, ..output }));
            }
            (Reply::Failed { message }, _) => return Ok(Err(message)),
            (Reply::Hello { .. }, _) => bail!("the guest restarted"),
        }
    }
}

/// Reads the agent's first frame: (release, time-stamp counter).
pub(crate) fn hello(from: &mut impl io::Read) -> Result<(String, u64)> {
    protocol::skip_preamble(from)?;
    match receive(from)?.context("the agent sent no frame")? {
        (Reply::Hello { version: protocol::VERSION, release, tsc }, _) => Ok((release, tsc)),
        (reply, _) => bail!("the agent has another protocol: {reply:?}: run make build"),
    }
}

/// Starts QEMU, whose guest's channel will connect to the listener.
fn start(spec: &Spec, initrd: Vec<u8>, more: &[&str]) -> Result<(Emulator, UnixListener)> {
    let folder = cache::scratch()?;
    let path = folder.path().join("initrd");
    fs::write(&path, initrd).context("write the initramfs")?;
    let listener =
        UnixListener::bind(folder.path().join("agent")).context("create the agent's socket")?;
    let mut command = emulator::qemu();
    command.args(Guest::arguments(spec, &path)?).args(more);
    command.args(["-serial", "file:ttyS0", "-serial", "file:ttyS1", "-serial", "file:ttyS2"]);
    command.args(["-qmp", "unix:control,server=on,wait=off"]);
    command.args(["-chardev", "socket,id=agent,path=agent", "-device", "virtio-serial-pci"]);
    command.args(["-device", "virtserialport,chardev=agent,name=kyozon.agent"]);
    if spec.one_host_cpu {
        process::on_one_cpu(&mut command);
    }
    Ok((Emulator::start(command, folder, spec.name())?, listener))
}

/// Waits for the connection of the guest's channel.
fn accept(
    listener: &UnixListener,
    emulator: &mut Emulator,
    deadline: Instant,
) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((port, _)) => {
                port.set_nonblocking(false)?;
                return Ok(port);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        ensure!(emulator.ended()?.is_none() && Instant::now() < deadline, "no connection");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the agent's connection and its first frame.
fn greet(
    listener: &UnixListener,
    emulator: &mut Emulator,
    deadline: Instant,
) -> Result<(UnixStream, String, u64)> {
    let mut port = accept(listener, emulator, deadline)?;
    port.set_read_timeout(Some(
        deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)),
    ))?;
    let (release, tsc) = hello(&mut port)?;
    Ok((port, release, tsc))
}
