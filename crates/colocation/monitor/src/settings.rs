//! The check `settings`: protections that Linux lets nobody take back still stand, and the programs that the kernel
//! starts by itself are the system's.
//!
//! Some settings only become stricter until the next boot. Once a look has seen the strict value, another one is
//! tampering: Linux has no way to write it. The kernel starts programs as root, whose paths are settings too. Root may
//! change these: only a path outside the directories in which systems keep programs is reported, unless it was there at
//! the first look.

mod security;

use crate::check::{About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use crate::walk::{entries, List};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use security::SecurityHooks;

/// Steps between two looks, and looks in a row that confirm a suspect: Linux writes a path byte by byte.
const PACE: u32 = 10;
const LOOKS: u32 = 2;

const WANTS: &[Wants] = &[
    Wants {
        symbols: &[],
        members: &[
            ("cgroup_root", "release_agent_path", Optional),
            ("cgroup_root", "root_list", Optional),
            ("selinux_state", "initialized", Optional),
        ],
        constants: &[],
    },
    security::WANTS,
];

/// How a protection becomes stricter.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// It keeps this value.
    Keeps(u64),
    /// It only grows.
    Grows,
}

/// The protections: the variable, its bytes and its rule. Linux: `kernel/module`, `kernel/kexec_core.c`,
/// `kernel/bpf/syscall.c`, `security/yama`, `security/lockdown`, `security/apparmor`,
/// `kernel/audit.c`, `kernel/trace/ftrace.c`: Linux ends its tracing for good after a fault of its own only.
const PROTECTIONS: [(&str, u64, Rule); 13] = [
    ("modules_disabled", 4, Rule::Keeps(1)),
    ("sig_enforce", 1, Rule::Keeps(1)),
    ("kexec_load_disabled", 4, Rule::Keeps(1)),
    ("sysctl_unprivileged_bpf_disabled", 4, Rule::Keeps(1)),
    ("ptrace_scope", 4, Rule::Keeps(3)),
    ("kernel_locked_down", 4, Rule::Grows),
    ("audit_enabled", 4, Rule::Keeps(2)),
    ("apparmor_initialized", 4, Rule::Keeps(1)),
    ("ftrace_disabled", 4, Rule::Keeps(0)),
    // The family of the sockets in a file of /proc/net.
    ("tcp4_seq_afinfo", 2, Rule::Keeps(2)),
    ("tcp6_seq_afinfo", 2, Rule::Keeps(10)),
    ("udp4_seq_afinfo", 2, Rule::Keeps(2)),
    ("udp6_seq_afinfo", 2, Rule::Keeps(10)),
];

/// Programs that the kernel starts, what comes before one (a core pattern without it names a file), and what it is.
const PROGRAMS: [(&str, &str, Form); 3] = [
    ("modprobe_path", "", Form::Path),
    ("core_pattern", "|", Form::Words),
    ("poweroff_cmd", "", Form::Words),
];
/// The program of a hierarchy of control groups, which Linux starts when a group of version 1 becomes empty.
const AGENT: &str = "release_agent";
/// Hierarchies that are visited: Linux has one for each controller at most, and named ones.
const MAX_HIERARCHIES: usize = 64;
/// Bytes of a program that are read. One of the system's is shorter, and so is all that Linux has but the programs of
/// hierarchies, of `PATH_MAX` bytes.
const PATH_BYTES: usize = 256;
/// Where systems keep programs.
const SYSTEMS: [&str; 9] = [
    "/usr/",
    "/sbin/",
    "/bin/",
    "/lib/",
    "/lib64/",
    "/opt/",
    "/nix/store/",
    "/gnu/store/",
    "/run/current-system/",
];
/// What administrators have the kernel start instead of any program.
const NONE: &str = "/dev/null";
/// Where no system keeps programs, even at the first look: anybody may write there, or it differs from process to
/// process.
const NOBODYS: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/", "/proc/"];

/// `path` without what does not change its meaning; `None` if it is not absolute, or if it leads back.
fn normal(path: &str) -> Option<String> {
    let leads_back = path.split('/').any(|part| part == "..");
    (path.starts_with('/') && !leads_back).then(|| from_root(path))
}

/// Where `path` leads for a program that runs in the root directory, if no directory on the way is a link.
fn from_root(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| ["/", part]).collect()
}

fn is_in(directories: &[&str], path: &str) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}

/// Whether Linux takes `byte` for a space between words (`_ctype` in Linux's `ctype.c`).
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// `word` without the percent signs that Linux replaces, each with the character after it: it drops unknown ones.
fn without_specifiers(word: &str) -> String {
    let mut chars = word.chars();
    let mut rest = String::new();
    while let Some(char) = chars.next() {
        if char == '%' {
            chars.next();
        } else {
            rest.push(char);
        }
    }
    rest
}

/// Whether an argument of a program names nothing where nobody keeps programs: an interpreter would run it.
fn may_be_argument(word: &str) -> bool {
    let word = without_specifiers(word);
    let is_good = |part: &str| {
        let path = from_root(part);
        path == NONE || !is_in(&NOBODYS, &path)
    };
    is_good(&word) && word.split('=').all(is_good)
}

/// Whether `command` is one that may be the system's: in its directories, or anywhere but where nobody keeps programs
/// if it `is_first`.
fn may_be_systems(command: &[u8], form: Form, is_first: bool) -> bool {
    let splits = |byte: &u8| form == Form::Words && is_space(*byte);
    let words = command.split(splits).filter(|word| !word.is_empty());
    let mut words = words.map(String::from_utf8_lossy);
    let Some(program) = words.next() else { return true };
    let program = normal(&program).filter(|path| !path.contains('%'));
    let is_good = program.is_some_and(|path| {
        path == NONE || is_in(&SYSTEMS, &path) || is_first && !is_in(&NOBODYS, &path)
    });
    is_good && words.all(|word| may_be_argument(&word))
}

/// A protection.
#[derive(Debug)]
struct Protection {
    name: &'static str,
    address: u64,
    bytes: u64,
    rule: Rule,
    /// The strictest value that was seen.
    strictest: Option<u64>,
}

impl Protection {
    /// Looks at it. Returns whether it is as strict as it was; `None` if it cannot be read.
    fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> Option<(bool, u64)> {
        let value = kernel.uint(self.address, self.bytes)?;
        let is_strict = match self.rule {
            Rule::Keeps(strict) => value == strict,
            Rule::Grows => value > self.strictest.unwrap_or(0),
        };
        if is_strict {
            self.strictest = Some(value);
        }
        Some((self.strictest.is_none_or(|strictest| value == strictest), value))
    }
}

/// What a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A path, with any spaces.
    Path,
    /// A path and arguments.
    Words,
}

/// A program.
#[derive(Debug)]
struct Program {
    name: &'static str,
    address: u64,
    begins: &'static str,
    form: Form,
    first: Option<Vec<u8>>,
}

/// The form in which a finding shows a command.
fn shown(command: &[u8]) -> String {
    let shown = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' };
    command.iter().map(shown).collect()
}

impl Program {
    fn text<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for at in 0..PATH_BYTES as u64 {
            match kernel.u8(self.address.wrapping_add(at))? {
                0 => break,
                byte => text.push(byte),
            }
        }
        Some(text)
    }

    /// Looks at it. Returns whether it is the system's, and a value that tells paths apart.
    fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> Option<(bool, u64)> {
        let text = self.text(kernel)?;
        let first = self.first.get_or_insert_with(|| text.clone());
        let command = text.strip_prefix(self.begins.as_bytes()).unwrap_or_default();
        let is_good = text.len() < PATH_BYTES && may_be_systems(command, self.form, *first == text);
        let sum = |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        Some((is_good, text.into_iter().fold(0, sum)))
    }
}

/// The check `settings`.
#[derive(Debug)]
pub struct SettingCheck {
    protections: Vec<Protection>,
    hooks: SecurityHooks,
    programs: Vec<Program>,
    /// The hierarchies of control groups, and the offset of the program in one. A kernel can lack them.
    hierarchies: Option<(List, u64)>,
    /// Their programs at the last look; `None` before the first.
    agents: Option<Vec<Program>>,
    /// Suspects by address.
    confirm: Confirm<u64>,
    pace: Pace,
    unjudged: u64,
}

impl SettingCheck {
    /// Looks for hierarchies that came or went: those that are there come first. A program that one had before the
    /// first look may be the system's. Returns the number of those that are there, and 1 if it leaves some out.
    fn find_agents<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> (usize, u64) {
        let Some((list, path)) = self.hierarchies else { return (0, 0) };
        let mut all = entries(kernel, list);
        let mut places: Vec<u64> =
            all.by_ref().take(MAX_HIERARCHIES).map(|root| root.wrapping_add(path)).collect();
        let left_out = u64::from(all.next().is_some());
        places.sort_unstable();
        places.dedup();
        let known = self.agents.take();
        let is_first = known.is_none();
        let mut known = known.unwrap_or_default();
        let mut agents: Vec<Program> = Vec::new();
        for address in places {
            let at = known.iter().position(|agent| agent.address == address);
            agents.push(at.map(|at| known.swap_remove(at)).unwrap_or_else(|| Program {
                name: AGENT,
                address,
                begins: "",
                form: Form::Path,
                first: (!is_first).then(Vec::new),
            }));
        }
        let count = agents.len();
        // The list can be in flux: what it had comes back.
        agents.extend(known.into_iter().take(MAX_HIERARCHIES));
        self.agents = Some(agents);
        (count, left_out)
    }

    fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        address: u64,
        value: u64,
    ) -> Finding {
        let protection = self.protections.iter().find(|it| it.address == address);
        let words = protection
            .map(|it| [it.name.into(), it.strictest.unwrap_or(0).to_string(), value.to_string()]);
        if let Some([symbol, expected, found]) =
            words.or_else(|| self.hooks.words(kernel, address, value))
        {
            return Finding {
                what: "protection lifted".into(),
                address,
                symbol,
                expected,
                found,
                ..Finding::new(Class::ProtectionLifted)
            };
        }
        let mut programs = self.programs.iter().chain(self.agents.iter().flatten());
        let program = programs.find(|it| it.address == address);
        let found = program.and_then(|program| program.text(kernel)).unwrap_or_default();
        let first = program.and_then(|program| program.first.clone());
        Finding {
            what: "kernel's program redirected".into(),
            address,
            symbol: program.map_or("", |program| program.name).into(),
            expected: first
                .filter(|first| *first != found && !first.is_empty())
                .map_or_else(|| "one of the system's".into(), |first| shown(&first)),
            found: shown(&found),
            ..Finding::new(Class::ProgramRedirected)
        }
    }
}

impl Make for SettingCheck {
    const ABOUT: About =
        About { name: "settings", wants: WANTS, share: 1, pass_ms: 0, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        let protection =
            |name, address, bytes, rule| Protection { name, address, bytes, rule, strictest: None };
        let mut protections: Vec<_> = PROTECTIONS
            .into_iter()
            .filter_map(|(name, bytes, rule)| {
                Some(protection(name, profile.symbol(name)?, bytes, rule))
            })
            .collect();
        let selinux =
            profile.symbol("selinux_state").zip(profile.field("selinux_state", "initialized"));
        protections.extend(selinux.map(|(state, field)| {
            protection("selinux_state.initialized", state + field.offset, 1, Rule::Keeps(1))
        }));
        let hierarchies = || {
            let member = |name| Some(profile.field("cgroup_root", name)?.offset);
            let head = profile.symbol("cgroup_roots")?;
            Some((List { head, link: member("root_list")? }, member("release_agent_path")?))
        };
        let program = |(name, begins, form)| {
            Some(Program { name, address: profile.symbol(name)?, begins, form, first: None })
        };
        Ok(Self {
            protections,
            hooks: SecurityHooks::new(profile),
            programs: PROGRAMS.into_iter().filter_map(program).collect(),
            hierarchies: hierarchies(),
            agents: None,
            confirm: Confirm::new(LOOKS),
            pace: Pace::every(PACE),
            unjudged: 0,
        })
    }
}

impl<M: KernelMemory> Check<M> for SettingCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        Coverage { unjudged: self.unjudged, ..Coverage::default() }
    }

    fn waiting(&self) -> u64 {
        self.confirm.waiting().count() as u64
    }

    fn stands(&self, _what: &str, address: u64) -> bool {
        self.confirm.stands(|at| at == address)
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        _budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _retries: &mut u64,
    ) -> Step {
        if self.pace.rests(false) {
            return Step::Rests;
        }
        let (agents, left_out) = self.find_agents(kernel);
        let protections = self.protections.iter_mut().map(|it| (it.address, it.look(kernel)));
        let agents = self.agents.iter_mut().flatten().take(agents);
        let programs = self.programs.iter_mut().chain(agents);
        let programs = programs.map(|it| (it.address, it.look(kernel)));
        let mut count = left_out;
        self.unjudged = left_out;
        for (address, look) in protections.chain(programs) {
            count += 1;
            match look {
                None => self.unjudged += 1,
                Some((true, _)) => {}
                Some((false, value)) => self.confirm.see(address, value),
            }
        }
        self.hooks.look(kernel, |address, value| self.confirm.see(address, value));
        self.confirm.end_look();
        for (address, value) in self.confirm.take() {
            found(self.finding(kernel, address, value));
        }
        Step::Done(count - self.unjudged)
    }
}

#[cfg(test)]
mod tests;
