use super::*;
use crate::fake::{self, physical, FakeMemory, IMAGE_BYTES, TEXT, TEXT_PHYSICAL};

const MODULES: u64 = TEXT + 0x1000;
const SIGNATURES: u64 = TEXT + 0x1009;
const PTRACE: u64 = TEXT + 0x1010;
const LOCKDOWN: u64 = TEXT + 0x1014;
const SELINUX: u64 = TEXT + 0x1020;
const APPARMOR: u64 = TEXT + 0x1030;
/// The head of the hierarchies of control groups, two of them, and the place of the path in one.
const GROUPS: u64 = TEXT + 0x1040;
const FIRST_GROUPS: u64 = TEXT + 0x4000;
const OTHER_GROUPS: u64 = TEXT + 0x5000;
const GROUPS_LINK: u64 = 8;
const AGENT_AT: u64 = 0x20;
const MODPROBE: u64 = TEXT + 0x2000;
const CORE: u64 = TEXT + 0x2f80;
const HANDLER: u64 = TEXT + 0x100;
/// Records and keys of hooks of security modules.
const CALLS: u64 = TEXT + 0x3000;
const KEYS: u64 = TEXT + 0x3100;
const TRACING: u64 = TEXT + 0x3200;
const FLAGS: [u64; 3] = [MODULES, SIGNATURES, SELINUX + 2];

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    check: SettingCheck,
}

impl World {
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (MODULES, b'B', "modules_disabled"),
            (SIGNATURES, b'b', "sig_enforce"),
            (PTRACE, b'd', "ptrace_scope"),
            (LOCKDOWN, b'b', "kernel_locked_down"),
            (SELINUX, b'B', "selinux_state"),
            (APPARMOR, b'B', "apparmor_initialized"),
            (GROUPS, b'D', "cgroup_roots"),
            (MODPROBE, b'D', "modprobe_path"),
            (CORE, b'd', "core_pattern"),
            (HANDLER, b'T', "handler"),
            (CALLS, b'D', "__SCK__lsm_static_call_a"),
            (CALLS + 16, b'D', "__SCK__lsm_static_call_b"),
            (CALLS + 32, b'D', "__SCK__lsm_static_call_c"),
            (KEYS, b'B', "security_hook_active_a"),
            (KEYS + 16, b'B', "security_hook_active_b"),
            (KEYS + 32, b'B', "security_hook_active_c"),
            (TRACING, b'd', "ftrace_disabled"),
        ];
        let layouts = [
            ("selinux_state.initialized", 2, 1),
            ("cgroup_root.root_list", GROUPS_LINK, 16),
            ("cgroup_root.release_agent_path", AGENT_AT, 4096),
            ("static_call_key", 0, 16),
            ("static_call_key.func", 0, 8),
            ("static_key", 0, 16),
            ("static_key.enabled", 0, 4),
        ];
        let profile = fake::profile(&symbols, &layouts);
        let check = SettingCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(TEXT_PHYSICAL + IMAGE_BYTES);
        memory.put(physical(MODPROBE), b"/sbin/modprobe\0");
        memory.put(physical(CORE), b"core\0");
        memory.set(physical(GROUPS), FIRST_GROUPS + GROUPS_LINK);
        memory.set(physical(FIRST_GROUPS) + GROUPS_LINK, GROUPS);
        Self { memory, profile, check }
    }

    /// The lines of as many looks.
    fn look(&mut self, looks: u32) -> Vec<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        fake::lines(&mut self.check, &kernel, (looks * PACE) as usize)
    }

    fn put(&self, at: u64, text: &str) {
        self.memory.put(physical(at), text.as_bytes());
        self.memory.put(physical(at) + text.len() as u64, &[0]);
    }

    /// Looks at a path, and takes it back.
    fn path(&mut self, at: u64, text: &str) -> Vec<String> {
        let words = (0..32).map(|word| physical(at) + 8 * word);
        let before: Vec<_> = words.map(|word| (word, self.memory.get(word))).collect();
        self.put(at, text);
        let lines = self.look(3);
        before.into_iter().for_each(|(word, value)| self.memory.set(word, value));
        assert_eq!(self.look(3), [""; 0]);
        lines
    }
}

#[test]
fn a_protection_that_was_taken_back_is_found() {
    for (at, name, strict, weak) in [
        (MODULES, "modules_disabled", 1, 0),
        (SIGNATURES, "sig_enforce", 1, 0),
        (PTRACE, "ptrace_scope", 3, 2),
        (LOCKDOWN, "kernel_locked_down", 16, 0),
        (LOCKDOWN, "kernel_locked_down", 27, 16),
        (SELINUX + 2, "selinux_state.initialized", 1, 0),
        (APPARMOR, "apparmor_initialized", 1, 0),
        (TRACING, "ftrace_disabled", 0, 1),
    ] {
        let mut w = World::new();
        assert_eq!(w.look(3), [""; 0]);
        w.memory.put(physical(at), &[strict]);
        assert_eq!(w.look(3), [""; 0]);
        w.memory.put(physical(at), &[weak]);
        assert_eq!(w.look(1), [""; 0], "not confirmed");
        let line = alloc::format!("protection lifted, {name}: {strict}, {weak}, nobody");
        assert_eq!(w.look(5), [line]);
        assert!(Check::<FakeMemory>::stands(&w.check, "protection lifted", at));
        w.memory.put(physical(at), &[strict]);
        assert_eq!(w.look(1), [""; 0]);
        assert!(!Check::<FakeMemory>::stands(&w.check, "protection lifted", at));
    }
}

#[test]
fn a_protection_may_become_stricter() {
    let mut w = World::new();
    for value in 0..4 {
        for at in FLAGS {
            w.memory.put(physical(at), &[value.min(1)]);
        }
        w.memory.put(physical(PTRACE), &[value]);
        w.memory.put(physical(LOCKDOWN), &[10 * value]);
        assert_eq!(w.look(3), [""; 0]);
    }
    // Below the strictest value, ptrace_scope may change in both directions.
    let mut w = World::new();
    for value in [2, 0, 1] {
        w.memory.put(physical(PTRACE), &[value]);
        assert_eq!(w.look(3), [""; 0]);
    }
}

#[test]
fn a_program_outside_the_system_is_found() {
    let mut w = World::new();
    assert_eq!(w.look(3), [""; 0]);
    let line = "kernel's program redirected, modprobe_path: /sbin/modprobe, /home/u/x, nobody";
    assert_eq!(w.path(MODPROBE, "/home/u/x"), [line]);
    let long = alloc::format!("/usr/{}../tmp/x", "./".repeat(70));
    for path in
        ["/tmp/x", "x", "./tmp/x", "//tmp/x", "/usr/../tmp/x", "/proc/9/fd/3", "/dev/null-x", &long]
    {
        assert_eq!(w.path(MODPROBE, path).len(), 1, "{path}");
    }
    for pattern in [
        "|/tmp/x %P",
        "| /tmp/x",
        "|/bin/sh /tmp/x",
        "|/bin/env -i //tmp/./x",
        "|/usr/.%z./tmp/x",
        "|/usr/bin/%e",
        "|/bin/sh\t/tmp/x",
        "|/bin/sh\x0b/tmp/x",
        "|/bin/sh tmp/x",
        "|/bin/sh /../tmp/x",
        "|/bin/sh /usr/../tmp/x",
        "|/bin/sh /%Ztmp/x",
        "|/bin/bash --rcfile=/tmp/x",
    ] {
        assert_eq!(w.path(CORE, pattern).len(), 1, "{pattern}");
    }
    let good = [
        (MODPROBE, ""),
        (MODPROBE, "/dev/null"),
        (MODPROBE, "/usr/bin/true"),
        (CORE, "/tmp/core.%p"),
        (MODPROBE, "/run/current-system/sw/bin/modprobe"),
        (CORE, "|/usr/lib/systemd/x %P"),
        (CORE, "| //usr/bin/x -- %E"),
        (CORE, "|"),
        (CORE, "|/usr/bin/x /var/crash/%e /dev/null"),
        (CORE, "|/usr/bin/x -p%p -s%s -- %E %% tmp % "),
    ];
    for (at, path) in good {
        assert_eq!(w.path(at, path), [""; 0], "{path}");
    }
}

#[test]
fn a_program_of_the_first_look_may_lie_anywhere_but_where_anybody_writes() {
    for (path, count) in [
        ("/run/current-system/modprobe", 0),
        ("/nix/x", 0),
        ("/dev/null", 0),
        ("/tmp/x", 1),
        ("/dev/shm/x", 1),
    ] {
        let mut w = World::new();
        w.put(MODPROBE, path);
        assert_eq!(w.look(5).len(), count, "{path}");
    }
}

#[test]
fn a_path_that_is_being_written_is_not_found() {
    let mut w = World::new();
    for path in ["/s", "/home/u/x", "/sbin/modprobe", "/home/u/y", "/home/u/z"] {
        w.put(MODPROBE, path);
        assert_eq!(w.look(1), [""; 0], "{path}");
    }
}

#[test]
fn a_setting_that_cannot_be_read_is_counted() {
    let profile = fake::profile(&[(TEXT, b'T', "_text"), (0x1000, b'B', "modprobe_path")], &[]);
    let profile = Profile::decode(&profile).unwrap();
    let mut check = SettingCheck::make(&profile, 1).unwrap();
    let memory = FakeMemory::new(TEXT_PHYSICAL + IMAGE_BYTES);
    let kernel = Kernel::new(&profile, &memory);
    assert_eq!(fake::lines(&mut check, &kernel, 20), [""; 0]);
    assert_eq!(Check::<FakeMemory>::coverage(&check).unjudged, 1);
}

#[test]
fn a_space_is_what_linux_takes_for_one() {
    assert!(!may_be_systems(b"/bin/sh\xa0/tmp/x", Form::Words, false));
    assert!(may_be_systems(b"/bin/sh\xa1/tmp/x", Form::Words, false));
    // Of a path it is a part.
    assert!(!may_be_systems(b"/usr/x /../../home/x", Form::Path, false));
    assert!(may_be_systems(b"/usr/x /tmp/x", Form::Path, false));
}

#[test]
fn the_program_of_a_hierarchy_of_control_groups_is_judged() {
    let mut w = World::new();
    w.put(FIRST_GROUPS + AGENT_AT, "/home/u/x");
    assert_eq!(w.look(5), [""; 0], "it was there before");
    // Another hierarchy, with such a program from its beginning.
    w.put(OTHER_GROUPS + AGENT_AT, "/home/u/x");
    w.memory.set(physical(FIRST_GROUPS) + GROUPS_LINK, OTHER_GROUPS + GROUPS_LINK);
    w.memory.set(physical(OTHER_GROUPS) + GROUPS_LINK, GROUPS);
    let line = "kernel's program redirected, release_agent: one of the system's, /home/u/x, nobody";
    assert_eq!(w.look(5), [line]);
    assert!(Check::<FakeMemory>::stands(&w.check, "", OTHER_GROUPS + AGENT_AT));
    w.put(OTHER_GROUPS + AGENT_AT, "/usr/lib/systemd/systemd-cgroups-agent");
    assert_eq!(w.look(5), [""; 0]);
    assert_eq!(w.path(FIRST_GROUPS + AGENT_AT, "/var/x").len(), 1);
    // Longer than what is read.
    let long = alloc::format!("/usr/{}../../home/x", "/".repeat(PATH_BYTES));
    w.put(OTHER_GROUPS + AGENT_AT, &long);
    assert_eq!(w.look(5).len(), 1);
    w.put(OTHER_GROUPS + AGENT_AT, "");
    assert_eq!(w.look(5), [""; 0]);
    // It is unmounted, and a list has no end.
    w.memory.set(physical(FIRST_GROUPS) + GROUPS_LINK, FIRST_GROUPS + GROUPS_LINK);
    assert_eq!(w.look(5), [""; 0]);
}

/// A text or a protection that has another value at each look is found all the same.
#[test]
fn what_changes_all_the_time_is_found() {
    let mut w = World::new();
    w.memory.put(physical(MODULES), &[1]);
    assert_eq!(w.look(3), [""; 0]);
    let mut lines = Vec::new();
    for number in 0..10 {
        w.put(CORE, &alloc::format!("|/tmp/x {number}"));
        w.memory.put(physical(MODULES), &[2 + number]);
        lines.extend(w.look(1));
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn hooks_of_security_modules_stay() {
    let call = |number: u64| physical(CALLS) + 16 * number;
    let key = |number: u64| physical(KEYS) + 16 * number;
    let mut w = World::new();
    w.memory.set(call(1), HANDLER);
    w.memory.put(key(1), &[1]);
    // A whole round.
    assert_eq!(w.look(20), [""; 0]);
    // An empty place stays empty.
    w.memory.set(call(2), HANDLER);
    let line = "protection lifted, __SCK__lsm_static_call_c: none, handler, nobody";
    assert_eq!(w.look(20), [line]);
    w.memory.put(key(2), &[1]);
    assert_eq!(w.look(20), ["protection lifted, security_hook_active_c: 0, 1, nobody"]);
    w.memory.put(key(2), &[0]);
    w.memory.set(call(2), 0);
    assert_eq!(w.look(20), [""; 0]);
    w.memory.set(call(1), HANDLER + 8);
    let line = "protection lifted, __SCK__lsm_static_call_b: handler, handler+0x8, nobody";
    assert_eq!(w.look(20), [line]);
    w.memory.set(call(1), HANDLER);
    w.memory.put(key(1), &[0]);
    assert_eq!(w.look(20), ["protection lifted, security_hook_active_b: 1, 0, nobody"]);
    w.memory.put(key(1), &[1]);
    w.memory.set(call(1), 0);
    let line = "protection lifted, __SCK__lsm_static_call_b: handler, none, nobody";
    assert_eq!(w.look(20), [line]);
}
