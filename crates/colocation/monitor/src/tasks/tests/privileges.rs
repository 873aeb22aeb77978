//! Tasks that gain privileges, with reason and without.

use super::super::privileges::Privileges;
use super::*;
use crate::class::Class;
use std::format;

const ALL: u64 = 0x1ff_ffff_ffff;
/// Long after the first pass.
const LATER: u32 = 5;
/// `PF_KTHREAD`.
const KERNEL_THREAD: u32 = 0x20_0000;
/// Another user namespace.
const CONFINED: u64 = linux::INIT_USER_NS + 0x40;
/// Keys of the auxiliary vector: `AT_SYSINFO_EHDR`, `AT_SECURE` and `AT_EXECFN`.
const FIRST: u64 = 33;
const SECURE: u64 = 23;
const FILE: u64 = 31;

impl Linux {
    /// Gives `task` new credentials.
    fn commit(&self, task: u64, users: [u32; 4], capabilities: u64) {
        let cred = self.alloc(64);
        for (at, user) in (linux::USERS..).step_by(4).zip(users) {
            self.put32(cred + at, user);
        }
        self.put(cred + linux::PERMITTED, capabilities);
        self.put(cred + linux::NAMESPACE, linux::INIT_USER_NS);
        self.put(task + linux::REAL_CRED, cred);
    }

    fn enter(&self, task: u64, namespace: u64) {
        self.put(self.get(task + linux::REAL_CRED) + linux::NAMESPACE, namespace);
    }

    /// `task` begins to execute a program.
    fn begin_program(&self, task: u64) {
        self.put(task + linux::MEMORY, self.alloc(128));
        let executions = self.get32(task + linux::EXECUTIONS);
        self.put32(task + linux::EXECUTIONS, executions + 1);
    }

    /// Linux has written a part of the vector.
    fn begin_vector(&self, task: u64) {
        self.put(self.get(task + linux::MEMORY) + linux::VECTOR, FIRST);
    }

    /// The program begins; it is `secure` if it was given privileges.
    fn end_program(&self, task: u64, secure: bool) {
        let vector = self.get(task + linux::MEMORY) + linux::VECTOR;
        for (at, word) in
            (vector..).step_by(8).zip([FIRST, DIRECT, SECURE, secure.into(), FILE, DIRECT])
        {
            self.put(at, word);
        }
    }

    /// The same with a program of 32 bits.
    fn end_short_program(&self, task: u64, secure: bool) {
        let vector = self.get(task + linux::MEMORY) + linux::VECTOR;
        self.put(vector, FIRST | 0xf7f0_0000 << 32);
        self.put(vector + 8, SECURE | u64::from(secure) << 32);
        self.put(vector + 16, FILE | 0xf7f0_0000 << 32);
    }

    fn execute(&self, task: u64, secure: bool) {
        self.begin_program(task);
        self.end_program(task, secure);
    }
}

const DIRECT: u64 = crate::fake::DIRECT;

/// A process of user 1000, in a program that gives nobody privileges.
fn user() -> (Linux, u64) {
    let (linux, [alone, ..]) = system(false);
    linux.commit(alone, [1000; 4], 0);
    linux.execute(alone, false);
    (linux, alone)
}

/// The findings if `change` happens after each step, as lines.
fn found_with(change: impl Fn(&Linux, u64, u32)) -> Vec<String> {
    let (linux, task) = user();
    let (findings, ..) = run(&linux, 40, 100_000, |step| change(&linux, task, step));
    let line = |f: &Finding| {
        let member = f.address - task;
        assert!(matches!(member, linux::REAL_CRED | linux::FILTER_MODE), "{f:?}");
        assert!(matches!(f.class, Class::PrivilegesGained | Class::FilterLifted));
        format!("{}: {}: {}: {}", f.what, f.symbol, f.expected, f.found)
    };
    findings.iter().map(line).collect()
}

/// The findings if `change` happens once, between two looks.
fn found(change: impl Fn(&Linux, u64)) -> Vec<String> {
    found_with(|linux, task, step| {
        if step == LATER {
            change(linux, task);
        }
    })
}

const GAINED: &str = "privileges gained: alone, pid 64: ";

fn before(found: &str) -> [String; 1] {
    [format!("{GAINED}user 1000 without capabilities, as before: {found}")]
}

#[test]
fn a_task_of_user_mode_is_judged_whatever_it_says() {
    let lines = found(|linux, task| {
        linux.put32(task + linux::FLAGS, KERNEL_THREAD);
        linux.commit(task, [0; 4], ALL);
    });
    assert_eq!(lines, before("user 0, capabilities 0x1ffffffffff"));
}

#[test]
fn privileges_without_a_reason_are_found() {
    let root = before("user 0, capabilities 0x1ffffffffff");
    assert_eq!(found(|linux, task| linux.commit(task, [0; 4], ALL)), root);
    // In place, and one after the other.
    for at in (0..16).step_by(4) {
        let lines = found(|linux, task| {
            linux.put32(linux.get(task + linux::REAL_CRED) + linux::USERS + at, 0);
        });
        assert_eq!(lines, before(if at == 0 { "user 0" } else { "user 1000, and 0" }));
    }
    for set in [linux::PERMITTED, linux::EFFECTIVE] {
        let lines = found(|linux, task| {
            linux.put(linux.get(task + linux::REAL_CRED) + set, 1 << 21);
        });
        assert_eq!(lines, before("user 1000, capabilities 0x200000"));
    }
    // A shell that an exploit executes, of 64 and of 32 bits.
    let shell = |linux: &Linux, task| {
        linux.commit(task, [0; 4], ALL);
        linux.execute(task, false);
    };
    assert_eq!(found(shell), root);
    let short_shell = |linux: &Linux, task| {
        linux.commit(task, [0; 4], ALL);
        linux.begin_program(task);
        linux.end_short_program(task, false);
    };
    assert_eq!(found(short_shell), root);
    // A program that seems to be executed for ever.
    let without_vector = |linux: &Linux, task: u64| {
        linux.put(linux.get(task + linux::MEMORY) + linux::VECTOR, 0);
        linux.commit(task, [0; 4], ALL);
    };
    assert_eq!(found(without_vector), root);
    // A vector that says that the program was given privileges: every process can write its own.
    let with_vector = |linux: &Linux, task: u64| {
        linux.end_program(task, true);
        linux.commit(task, [0; 4], ALL);
    };
    assert_eq!(found(with_vector), root);
    // A thread that takes the place of the first one of its process.
    let as_a_thread = |linux: &Linux, task: u64| {
        linux.put(task + linux::START, linux.get(task + linux::START) - 1);
        shell(linux, task);
    };
    assert_eq!(found(as_a_thread), root);
}

#[test]
fn privileges_with_a_reason_are_not_found() {
    let sudo = |linux: &Linux, task| {
        linux.execute(task, true);
        linux.commit(task, [1000, 0, 0, 0], ALL);
    };
    assert_eq!(found(sudo), [""; 0]);
    let short_sudo = |linux: &Linux, task| {
        linux.begin_program(task);
        linux.end_short_program(task, true);
        linux.commit(task, [1000, 0, 0, 0], ALL);
    };
    assert_eq!(found(short_sudo), [""; 0]);
    let with_file_capabilities = |linux: &Linux, task| {
        linux.execute(task, true);
        linux.commit(task, [0; 4], 1 << 7);
    };
    assert_eq!(found(with_file_capabilities), [""; 0]);
    let becomes_root_by_capability = |linux: &Linux, task, step| match step {
        0 => {
            linux.execute(task, true);
            linux.commit(task, [1000; 4], 1 << 7);
        }
        LATER => {
            linux.execute(task, false);
            linux.commit(task, [0; 4], ALL);
        }
        _ => {}
    };
    assert_eq!(found_with(becomes_root_by_capability), [""; 0]);
    // Between two looks: what was executed first is not known any more.
    let shell_of_sudo = |linux: &Linux, task| {
        sudo(linux, task);
        linux.execute(task, false);
    };
    assert_eq!(found(shell_of_sudo), [""; 0]);
    let in_a_namespace = |linux: &Linux, task: u64| {
        linux.commit(task, [1000; 4], ALL);
        linux.enter(task, CONFINED);
    };
    assert_eq!(found(in_a_namespace), [""; 0]);
    // The user of the namespace who is 0 there: any program gives it capabilities.
    let user_of_a_namespace = |linux: &Linux, task: u64, step| match step {
        0 => linux.enter(task, CONFINED),
        LATER => {
            linux.execute(task, false);
            linux.commit(task, [1000; 4], ALL);
            linux.enter(task, CONFINED);
        }
        _ => {}
    };
    assert_eq!(found_with(user_of_a_namespace), [""; 0]);
    // Another task in the same memory.
    let reused = |linux: &Linux, task: u64| {
        linux.put(task + linux::START, linux.get(task + linux::START) + 1000);
        linux.commit(task, [0; 4], ALL);
    };
    assert_eq!(found(reused), [""; 0]);
    // A kernel thread that works in a process's memory, where a task was.
    let kernels = |linux: &Linux, task: u64, step| {
        if step == LATER {
            linux.put(task + linux::START, linux.get(task + linux::START) + 1000);
            linux.put32(task + linux::FLAGS, KERNEL_THREAD);
            linux.put(task + linux::REAL_CRED, linux::INIT_CRED);
        }
    };
    assert_eq!(found_with(kernels), [""; 0]);
    // A task that ends.
    for (at, value) in [(linux::FLAGS, 4), (linux::STATE, 0x800)] {
        let other = |linux: &Linux, task: u64| {
            linux.put32(task + at, value);
            linux.commit(task, [0; 4], ALL);
        };
        assert_eq!(found(other), [""; 0]);
    }
}

/// Linux counts the program first, then commits the credentials, then writes the vector. A look may come in between.
#[test]
fn program_that_is_being_executed_is_not_judged() {
    for pause in 1..4 {
        let sudo_and_shell = |linux: &Linux, task, step| match step {
            LATER => linux.begin_program(task),
            at if at == LATER + pause => {
                linux.commit(task, [1000, 0, 0, 0], ALL);
                linux.begin_vector(task);
            }
            at if at == LATER + 2 * pause => {
                linux.end_program(task, true);
                // At once, so that nobody sees the first program.
                linux.execute(task, false);
            }
            _ => {}
        };
        assert_eq!(found_with(sudo_and_shell), [""; 0], "{pause}");
    }
}

#[test]
fn escape_from_a_namespace_is_found() {
    for capabilities in [0, ALL] {
        let lines = found_with(|linux, task, step| match step {
            0 => {
                linux.commit(task, [1000; 4], capabilities);
                linux.enter(task, CONFINED);
            }
            LATER => linux.commit(task, [0; 4], ALL),
            _ => {}
        });
        let expected = "another user namespace than the first one, as before: ";
        assert_eq!(lines, [format!("{GAINED}{expected}user 0, capabilities 0x1ffffffffff")]);
    }
}

/// Memory that was freed may belong to another task for a moment.
#[test]
fn privileges_of_two_passes_are_not_confirmed() {
    let (linux, task) = user();
    let own = linux.get(task + linux::REAL_CRED);
    let (findings, ..) = run(&linux, 30, 100_000, |step| match step % 4 {
        1 => linux.commit(task, [0; 4], ALL),
        3 => linux.put(task + linux::REAL_CRED, own),
        _ => {}
    });
    assert_eq!(findings, []);
}

#[test]
fn credentials_of_the_kernel_are_found_without_an_earlier_look() {
    let (linux, task) = user();
    linux.put(task + linux::REAL_CRED, linux::INIT_CRED);
    linux.put(linux::INIT_CRED + linux::NAMESPACE, linux::INIT_USER_NS);
    let findings = find(&linux);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].expected, "credentials of its own");
    assert_eq!(findings[0].found, "the kernel's own (init_cred)");
}

#[test]
fn filter_that_is_lifted_is_found() {
    let filter = |linux: &Linux, task, mode, work| {
        linux.put32(task + linux::FILTER_MODE, mode);
        linux.put(task + linux::WORK, work);
    };
    for (mode, work) in [(0, 0), (2, 0), (0, 2)] {
        let lines = found_with(|linux, task, step| match step {
            0 => filter(linux, task, 2, 2),
            LATER => filter(linux, task, mode, work),
            _ => {}
        });
        let line = "system call filter lifted: alone, pid 64: the filter that it had: none";
        assert_eq!(lines, [line], "{mode} {work}");
    }
    // Linux kills a task in this mode.
    let killed = |linux: &Linux, task, step| match step {
        0 => filter(linux, task, 2, 2),
        LATER => filter(linux, task, 3, 2),
        _ => {}
    };
    assert_eq!(found_with(killed), [""; 0]);
}

/// A container's root without capabilities, a server that may bind ports, and one that may become any user.
#[test]
fn more_privileges_without_a_reason_are_found() {
    const BIND: u64 = 1 << 10;
    let from = |users: [u32; 4], capabilities, change: &dyn Fn(&Linux, u64)| {
        found_with(|linux, task, step| match step {
            0 => {
                linux.execute(task, true);
                linux.commit(task, users, capabilities);
            }
            LATER => change(linux, task),
            _ => {}
        })
    };
    let root = |linux: &Linux, task: u64| linux.commit(task, [0; 4], ALL);
    let shell = |linux: &Linux, task: u64| {
        root(linux, task);
        linux.execute(task, false);
    };
    let found = "user 0, capabilities 0x1ffffffffff";
    let line = |before: &str| [format!("{GAINED}{before}, as before: {found}")];
    assert_eq!(from([0; 4], 0, &root), line("user 0"));
    for gain in [&root as &dyn Fn(&Linux, u64), &shell] {
        assert_eq!(from([1000; 4], BIND, gain), line("user 1000, capabilities 0x400"));
    }
    let all = |linux: &Linux, task: u64| linux.commit(task, [1000; 4], ALL);
    let lines = from([1000; 4], 1 << 7, &all);
    assert_eq!(lines.len(), 1, "{lines:?}");
    // Fewer, another user, a program that gives some, one of user 0, and another namespace.
    let fewer = |linux: &Linux, task: u64| linux.commit(task, [1000; 4], 0);
    assert_eq!(from([0; 4], ALL, &fewer), [""; 0]);
    let become_root = |linux: &Linux, task: u64| linux.commit(task, [0; 4], 1 << 7);
    assert_eq!(from([1000; 4], 1 << 7, &become_root), [""; 0]);
    let sudo = |linux: &Linux, task: u64| {
        linux.execute(task, true);
        root(linux, task);
    };
    assert_eq!(from([1000; 4], BIND, &sudo), [""; 0]);
    assert_eq!(from([0; 4], 0, &shell), [""; 0]);
    let confined = |linux: &Linux, task: u64| {
        linux.commit(task, [1000; 4], ALL);
        linux.enter(task, CONFINED);
    };
    assert_eq!(from([1000; 4], BIND, &confined), [""; 0]);
}

#[test]
fn filter_that_is_suspended_or_lets_more_pass_is_found() {
    const FILTER: u64 = linux::INIT_USER_NS + 0x80;
    let lifted = |change: &dyn Fn(&Linux, u64)| {
        found_with(|linux, task, step| match step {
            0 => {
                linux.put32(task + linux::FILTER_MODE, 2);
                linux.put(task + linux::WORK, 2);
                linux.put(task + linux::FILTER, FILTER);
                linux.put(FILTER + 8, 6);
            }
            LATER => change(linux, task),
            _ => {}
        })
    };
    let line = "system call filter lifted: alone, pid 64: the filter that it had: ";
    let suspended = |linux: &Linux, task: u64| linux.put32(task + linux::TRACER, 1 << 24);
    assert_eq!(lifted(&suspended), [format!("{line}none")]);
    let by_tracer = |linux: &Linux, task: u64| linux.put32(task + linux::TRACER, 1 << 24 | 1);
    assert_eq!(lifted(&by_tracer), [""; 0]);
    let passes = |linux: &Linux, _| linux.put(FILTER + 8, 7);
    assert_eq!(lifted(&passes), [format!("{line}one that lets other calls pass")]);
    let another = |linux: &Linux, task: u64| {
        linux.put(FILTER + 24, 1);
        linux.put(task + linux::FILTER, FILTER + 16);
    };
    assert_eq!(lifted(&another), [""; 0]);
}

#[test]
fn finding_stands_until_the_privileges_are_gone() {
    let (linux, task) = user();
    let own = linux.get(task + linux::REAL_CRED);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    let mut stands = Vec::new();
    for step in 0..20 {
        match step {
            3 => linux.commit(task, [0; 4], ALL),
            12 => linux.put(task + linux::REAL_CRED, own),
            _ => {}
        }
        tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| {}, &mut 0);
        let check: &dyn Check<crate::fake::FakeMemory> = &tasks;
        stands.push(check.stands("privileges gained", task + linux::REAL_CRED));
    }
    let expected: Vec<bool> = (0..20).map(|step| (5..12).contains(&step)).collect();
    assert_eq!(stands, expected);
}

#[test]
fn what_a_kernel_does_not_have_is_counted() {
    let lacking = |path: &str| {
        let layouts: Vec<_> = linux::LAYOUTS.iter().copied().filter(|at| at.0 != path).collect();
        let symbols =
            [(linux::INIT_CRED, b'D', "init_cred"), (linux::INIT_USER_NS, b'D', "init_user_ns")];
        let profile = crate::fake::profile(&symbols, &layouts);
        Privileges::new(&Profile::decode(&profile).unwrap(), 1).lacking()
    };
    assert_eq!(lacking(""), 0);
    assert_eq!(lacking("task_struct.seccomp.mode"), 1);
    assert_eq!(lacking("cred.uid"), 2);
}

#[test]
fn tasks_that_ended_are_forgotten() {
    let linux = Linux::new(false);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    for number in 10..400 {
        let task = linux.spawn("short", number, None);
        linux.commit(task, [1000; 4], 0);
        linux.execute(task, false);
        tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| {}, &mut 0);
        linux.exit(task);
    }
    assert!(tasks.privileges.known() < 10, "{}", tasks.privileges.known());
}

#[test]
fn another_task_in_the_same_memory_is_not_judged_by_the_old_one() {
    // A thread of a server with privileges of its own takes the memory of one without, and then its process's place.
    let (process, thread) = (500, 700);
    let lines = found_with(|linux, task, step| match step {
        1 => linux.put(task + linux::START, thread),
        LATER => {
            linux.put(task + linux::MARK, 77);
            linux.put(task + linux::START, process);
            linux.commit(task, [0; 4], ALL);
            linux.execute(task, false);
        }
        _ => {}
    });
    assert_eq!(lines, [""; 0]);
}

#[test]
fn a_task_that_ended_lends_its_finding_no_name() {
    let (linux, task) = user();
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let layout = TaskLayout::new(&profile).unwrap();
    let mut privileges = Privileges::new(&profile, 100);
    let mut found = Vec::new();
    for pass in 0..5 {
        privileges.look(&kernel, &layout, task);
        if pass == 0 {
            linux.commit(task, [0; 4], ALL);
        }
        if pass == 3 {
            // Another task begins in its memory.
            linux.put(task + linux::START, linux.get(task + linux::START) + 1);
        }
        privileges.end_pass(&kernel, &layout, &mut |finding| found.push(finding));
    }
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.symbol.as_str(), finding.stop.len()), ("a task that ended", 0));
}
