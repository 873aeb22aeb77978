//! Tasks that gain privileges, with reason and without.

use super::*;
use crate::class::Class;
use std::format;

const ALL: u64 = 0x1ff_ffff_ffff;
/// Long after the first pass.
const LATER: u32 = 5;

impl Linux {
    /// Gives `task` new credentials.
    fn commit(&self, task: u64, users: [u32; 4], capabilities: u64) {
        let cred = self.alloc(64);
        for (at, user) in (linux::USERS..).step_by(4).zip(users) {
            self.put32(cred + at, user);
        }
        self.put(cred + linux::PERMITTED, capabilities);
        self.put(cred + linux::NAMESPACE, linux::INIT_PID_NS);
        self.put(task + linux::REAL_CRED, cred);
    }

    /// `task` executes a program with this mode and owner.
    fn execute(&self, task: u64, mode: u32, owner: u32) {
        let [memory, file, inode] = [64; 3].map(|bytes| self.alloc(bytes));
        self.put(memory + linux::EXE_FILE, file);
        self.put(file + linux::INODE, inode);
        self.put32(inode + linux::MODE, mode);
        self.put32(inode + linux::OWNER, owner);
        self.put(task + linux::MEMORY, memory);
        let executions = self.get32(task + linux::EXECUTIONS);
        self.put32(task + linux::EXECUTIONS, executions + 1);
    }
}

/// A process of user 1000, in a program that anybody may execute.
fn user() -> (Linux, u64) {
    let (linux, [alone, ..]) = system(false);
    linux.commit(alone, [1000; 4], 0);
    linux.execute(alone, 0o755, 0);
    (linux, alone)
}

/// What is found if `change` happens later on, as lines.
fn found(change: impl Fn(&Linux, u64)) -> Vec<String> {
    let (linux, task) = user();
    let (findings, ..) = run(&linux, 20, 100_000, |step| {
        if step == LATER {
            change(&linux, task);
        }
    });
    let is_about = |finding: &&Finding| {
        let member = finding.address - task;
        assert!(matches!(member, linux::REAL_CRED | linux::FILTER_MODE), "{finding:?}");
        assert!(matches!(finding.class, Class::PrivilegesGained | Class::FilterLifted));
        true
    };
    let line = |f: &Finding| format!("{}: {}: {}: {}", f.what, f.symbol, f.expected, f.found);
    findings.iter().filter(is_about).map(line).collect()
}

#[test]
fn privileges_without_a_reason_are_found() {
    let before = "privileges gained: alone, pid 64: user 1000 without capabilities, as before: ";
    let root = [format!("{before}user 0, capabilities 0x1ffffffffff")];
    assert_eq!(found(|linux, task| linux.commit(task, [0; 4], ALL)), root);
    // In place, and one after the other.
    for at in (0..16).step_by(4) {
        let lines = found(|linux, task| {
            linux.put32(linux.get(task + linux::REAL_CRED) + linux::USERS + at, 0);
        });
        let is = if at == 0 { "user 0" } else { "user 1000, and 0" };
        assert_eq!(lines, [format!("{before}{is}")]);
    }
    let capable = [format!("{before}user 1000, capabilities 0x200000")];
    assert_eq!(found(|linux, task| linux.commit(task, [1000; 4], 1 << 21)), capable);
    // A shell that an exploit executes.
    let shell = |linux: &Linux, task| {
        linux.commit(task, [0; 4], ALL);
        linux.execute(task, 0o755, 0);
    };
    assert_eq!(found(shell), root);
    // The bit of another user makes nobody user 0.
    let of_others = |linux: &Linux, task| {
        linux.commit(task, [0; 4], ALL);
        linux.execute(task, 0o4755, 7);
    };
    assert_eq!(found(of_others), root);
}

#[test]
fn privileges_with_a_reason_are_not_found() {
    let sudo = |linux: &Linux, task| {
        linux.execute(task, 0o4755, 0);
        linux.commit(task, [1000, 0, 0, 0], ALL);
    };
    assert_eq!(found(sudo), [""; 0]);
    let with_file_capabilities = |linux: &Linux, task| {
        linux.execute(task, 0o755, 0);
        linux.commit(task, [1000; 4], 1 << 13);
    };
    assert_eq!(found(with_file_capabilities), [""; 0]);
    // Between two looks: what was executed first is not known any more.
    let shell_of_sudo = |linux: &Linux, task| {
        sudo(linux, task);
        linux.execute(task, 0o755, 0);
    };
    assert_eq!(found(shell_of_sudo), [""; 0]);
    let in_a_namespace = |linux: &Linux, task: u64| {
        linux.commit(task, [1000; 4], ALL);
        linux.put(linux.get(task + linux::REAL_CRED) + linux::NAMESPACE, DIRECT_NAMESPACE);
    };
    assert_eq!(found(in_a_namespace), [""; 0]);
    // Another task in the same memory.
    let reused = |linux: &Linux, task: u64| {
        linux.put(task + linux::START, linux.get(task + linux::START) + 1000);
        linux.commit(task, [0; 4], ALL);
    };
    assert_eq!(found(reused), [""; 0]);
    // A task that ends, and one of the kernel.
    for (at, value) in [(linux::FLAGS, 4), (linux::FLAGS, 0x20_0000), (linux::STATE, 0x800)] {
        let other = |linux: &Linux, task: u64| {
            linux.put32(task + at, value);
            linux.commit(task, [0; 4], ALL);
        };
        assert_eq!(found(other), [""; 0]);
    }
}

/// Another user namespace.
const DIRECT_NAMESPACE: u64 = linux::INIT_PID_NS + 0x100;

/// Memory that was freed may belong to another task for a moment.
#[test]
fn privileges_of_two_passes_are_not_confirmed() {
    let (linux, task) = user();
    let before = linux.get(task + linux::REAL_CRED);
    let (findings, ..) = run(&linux, 30, 100_000, |step| match step % 4 {
        1 => linux.commit(task, [0; 4], ALL),
        3 => linux.put(task + linux::REAL_CRED, before),
        _ => {}
    });
    assert_eq!(findings, []);
}

#[test]
fn credentials_of_the_kernel_are_found_without_an_earlier_look() {
    let (linux, task) = user();
    linux.put(task + linux::REAL_CRED, linux::INIT_CRED);
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
        let (linux, task) = user();
        filter(&linux, task, 2, 2);
        let (findings, ..) = run(&linux, 20, 100_000, |step| {
            if step == LATER {
                filter(&linux, task, mode, work);
            }
        });
        assert_eq!(findings.len(), 1, "{mode} {work}");
        assert_eq!(findings[0].class, Class::FilterLifted);
    }
    // Linux kills a task in this mode.
    let killed = |linux: &Linux, task| {
        filter(linux, task, 2, 2);
        filter(linux, task, 3, 2);
    };
    assert_eq!(found(killed), [""; 0]);
}

#[test]
fn finding_stands_until_the_privileges_are_gone() {
    let (linux, task) = user();
    let before = linux.get(task + linux::REAL_CRED);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    let mut stands = Vec::new();
    for step in 0..20 {
        match step {
            3 => linux.commit(task, [0; 4], ALL),
            12 => linux.put(task + linux::REAL_CRED, before),
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
fn tasks_that_ended_are_forgotten() {
    let linux = Linux::new(false);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    for number in 10..400 {
        let task = linux.spawn("short", number, None);
        linux.commit(task, [1000; 4], 0);
        linux.execute(task, 0o755, 0);
        tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| {}, &mut 0);
        linux.exit(task);
    }
    assert!(tasks.privileges.known() < 10, "{}", tasks.privileges.known());
}
