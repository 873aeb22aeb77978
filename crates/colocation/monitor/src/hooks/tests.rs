mod disarm;
mod traced;

use super::tracers::CALL;
use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};
use std::collections::BTreeMap as Offsets;
use std::format;

const HANDLER: u64 = TEXT + 0x400;
const GETDENTS: u64 = TEXT + 0x500;
const END_OF_TEXT: u64 = TEXT + 0x1000;
const TABLE: u64 = TEXT + 0x2000;
const MODULES: u64 = TEXT + 0x8000;
const MODULE: u64 = DIRECT + 0x1000;
/// Code and data of the module; code of nobody.
const CODE: u64 = 0xffff_ffff_c000_0000;
const DATA: u64 = CODE + 0x1000;
const NOBODY: u64 = 0xffff_ffff_c123_4560;

/// Functions that do nothing; where a copy of `ftrace_caller`, or of the other one, calls its function.
const NOTHING: u64 = TEXT + 0x4c0;
const ACCEPT: u64 = TEXT + 0x4d0;
const TRACE: u64 = TEXT + 0x4e0;
/// The trampoline of a static call.
const STATIC_CALL: u64 = TEXT + 0x800;
/// Goes on with live patches.
const PATCHES: u64 = TEXT + 0x4f0;
const CALL_AT: u64 = 0x1e;
const REGS_CALL_AT: u64 = 0x2b;
/// Two tracepoints; the places of static calls.
const TRACEPOINTS: u64 = TEXT + 0x2100;
const SITES: u64 = TEXT + 0x2200;

/// Variables of the kernel that the sources start at, each at an address of its own.
const VARIABLES: &[&str] = &[
    "__ftrace_graph_entry",
    "__per_cpu_offset",
    "console_cdev",
    "die_chain",
    "direct_functions",
    "fgraph_array",
    "formats",
    "ftrace_graph_entry",
    "ftrace_graph_return",
    "ftrace_ops_list",
    "init_net",
    "inet6_offloads",
    "inet_protos",
    "inetaddr_chain",
    "input_handler_list",
    "kprobe_table",
    "kthreadd_task",
    "misc_list",
    "net_namespace_list",
    "netdev_chain",
    "nr_cpu_ids",
    "offload_base",
    "proc_root",
    "proto_list",
    "ptype_all",
    "ptype_base",
    "sock_diag_handlers",
    "static_call_mutex",
    "super_blocks",
    "tcp_prot",
    "text_mutex",
    "tracepoints_mutex",
    "tty_drivers",
    "tty_ldiscs",
];

fn variable(name: &str) -> u64 {
    TEXT + 0x1_0000 + 0x1000 * VARIABLES.iter().position(|known| *known == name).unwrap() as u64
}

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    /// Offset of each `structure.member`: behind the one before.
    offsets: Offsets<String, u64>,
    check: HookCheck,
}

impl World {
    fn new() -> Self {
        Self::without("")
    }

    /// That of a kernel that lacks a variable.
    fn without(lacks: &str) -> Self {
        let mut offsets = Offsets::new();
        let mut ends = Offsets::new();
        for (structure, member, _) in WANTS.iter().flat_map(|wants| wants.members) {
            let end = ends.entry(String::from(*structure)).or_insert(0u64);
            let key = format!("{structure}.{member}");
            offsets.entry(key).or_insert_with(|| {
                *end += Self::bytes(structure, member);
                *end - Self::bytes(structure, member)
            });
        }
        let mut layouts: Vec<(String, u64, u64)> = offsets
            .iter()
            .map(|(key, at)| {
                let (structure, member) = key.split_once('.').unwrap();
                (key.clone(), *at, Self::bytes(structure, member))
            })
            .collect();
        layouts.extend(ends.iter().map(|(structure, end)| (structure.clone(), 0, *end)));
        let others = [
            ("hlist_node.next", 0, 8),
            ("rb_node.__rb_parent_color", 0, 8),
            ("rb_node.rb_right", 8, 8),
            ("rb_node.rb_left", 16, 8),
            ("module.list", 0, 16),
            ("module.name", 16, 56),
            ("module.mem", 128, 112),
            ("module_memory", 0, 16),
            ("module_memory.base", 0, 8),
            ("module_memory.size", 8, 4),
        ];
        layouts.extend(others.map(|(key, at, bytes)| (String::from(key), at, bytes)));
        let layouts: Vec<(&str, u64, u64)> =
            layouts.iter().map(|(key, at, bytes)| (&**key, *at, *bytes)).collect();
        let mut symbols = std::vec![
            // The CPUs' areas begin here; two sets of timers.
            (0x40, b'A', "timer_bases"),
            (0x40 + 2 * ends["timer_base"], b'A', "behind_timers"),
            (0x4000, b'A', "hrtimer_bases"),
            (0x6000, b'A', "bp_per_reg"),
            (TEXT, b'T', "_text"),
            (HANDLER, b'T', "handler"),
            (TEXT + 0x480, b't', "aggr_pre_handler"),
            (TEXT + 0x490, b't', "pre_handler_kretprobe"),
            (TEXT + 0x4a0, b't', "delayed_work_timer_fn"),
            (TEXT + 0x4b0, b't', "fprobe_handler"),
            (PATCHES, b't', "klp_ftrace_handler"),
            (NOTHING, b't', "no_action"),
            (ACCEPT, b't', "accept_all"),
            (TRACE, b't', "ftrace_stub"),
            (TEXT + 0x700, b't', "ftrace_caller"),
            (TEXT + 0x700 + CALL_AT, b't', "ftrace_call"),
            (TEXT + 0x780, b't', "ftrace_regs_caller"),
            (TEXT + 0x780 + REGS_CALL_AT, b't', "ftrace_regs_call"),
            (TEXT + 0x7c0, b't', "ftrace_ops_assist_func"),
            (TRACEPOINTS, b'd', "__start___tracepoints_ptrs"),
            (TRACEPOINTS + 8, b'd', "__stop___tracepoints_ptrs"),
            (SITES + 0x40, b'd', "__stop_static_call_sites"),
            (GETDENTS, b'T', "__se_sys_getdents64"),
            (GETDENTS, b'T', "__x64_sys_getdents64"),
            (TEXT + 0x600, b'T', "other"),
            (TEXT + 0x680, b't', "proc_fill_cache.isra.0"),
            (TEXT + 0x6c0, b't', "behind_listings"),
            (STATIC_CALL, b't', "__static_call_text_start"),
            (STATIC_CALL + 8, b't', "__static_call_text_end"),
            (END_OF_TEXT, b'T', "_etext"),
            (TABLE, b'd', "table"),
            (MODULES, b'D', "modules"),
        ];
        let variables = VARIABLES.iter().filter(|name| **name != lacks);
        symbols.extend(variables.map(|name| (variable(name), b'd', *name)));
        let profile = fake::profile(&symbols, &layouts);
        let check = HookCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        let world = Self { memory, profile, offsets, check };
        for (at, value) in [
            (MODULES, MODULE),
            (MODULE, MODULES),
            (MODULE + 16, u64::from_le_bytes(*b"evil\0\0\0\0")),
            (MODULE + 128, CODE),
            (MODULE + 136, 0x1000),
            (MODULE + 144, DATA),
            (MODULE + 152, 0x1000),
        ] {
            world.set(at, value);
        }
        for list in [
            "formats",
            "input_handler_list",
            "misc_list",
            "net_namespace_list",
            "offload_base",
            "proto_list",
            "ptype_all",
            "super_blocks",
            "tty_drivers",
        ] {
            world.set(variable(list), variable(list));
        }
        (0..16).for_each(|list| {
            let head = variable("ptype_base") + 16 * list;
            world.set(head, head);
        });
        world
    }

    /// Bytes of a member: enough for the lists of those that have many.
    fn bytes(structure: &str, member: &str) -> u64 {
        match (structure, member) {
            ("hrtimer_cpu_base", "clock_base") => 8 * Self::bytes("hrtimer_clock_base", "active"),
            ("net", "nf.hooks_ipv4") => 40,
            ("perf_event", "attr") => 48,
            ("timer_base", "vectors") => 576 * 8,
            ("timer_base", "pending_map") => 72,
            // The work's function is not in the timer.
            ("delayed_work", "timer") => 64,
            ("klp_ops", "fops") | ("fprobe", "ops") | ("kretprobe", "kp") => 512,
            (_, "s_id" | "comm") => 32,
            _ => 24,
        }
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    /// Sets members of the object at `object` of `structure`.
    fn object(&self, structure: &str, object: u64, members: &[(&str, u64)]) -> u64 {
        for (member, value) in members {
            self.set(self.at(structure, member, object), *value);
        }
        object
    }

    /// The address of a member.
    fn at(&self, structure: &str, member: &str, object: u64) -> u64 {
        object + self.offsets[&format!("{structure}.{member}")]
    }

    /// Links `link` into the empty list at `head`.
    fn link(&self, head: u64, link: u64) {
        self.set(head, link);
        self.set(link, head);
    }

    /// The findings of some passes, as lines.
    fn look(&mut self, passes: u32) -> Vec<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        let mut lines = Vec::new();
        let mut passes = passes;
        while passes > 0 {
            let mut budget = fake::CallBudget(100_000);
            let mut found = |f: Finding| {
                let Finding { what, symbol, owner, expected, found, .. } = f;
                lines.push(format!("{what}, {symbol}: {expected}, {found}, {owner}"));
            };
            let step = self.check.step(&kernel, &mut budget, &mut found, &mut 0);
            passes -= u32::from(matches!(step, Step::Done(_)));
        }
        lines
    }

    /// What a hook that leads to nobody is found as, and that a module's is not.
    fn hides(&mut self, slot: u64, line: &str) {
        self.set(slot, CODE + 0x10);
        assert_eq!(self.look(2 * PASSES), [""; 0], "{line}");
        self.set(slot, NOBODY);
        assert_eq!(self.look(PASSES - 1), [""; 0], "{line}");
        let owner = "0xffffffffc1234560 in no listed module";
        assert_eq!(self.look(1), [format!("{line}: , 0xffffffffc1234560, {owner}")]);
        self.set(slot, HANDLER);
        assert_eq!(self.look(PASSES), [""; 0], "{line}");
    }
}

/// An object that every test has for itself.
const OBJECT: u64 = DIRECT + 0x1_0000;

#[test]
fn every_source_is_found_in_an_empty_kernel() {
    let mut world = World::new();
    assert_eq!(world.check.coverage.unjudged, 0);
    assert_eq!(world.look(3), [""; 0]);
}

#[test]
fn notifiers() {
    for (chain, head) in [
        ("die_chain", "atomic_notifier_head"),
        ("inetaddr_chain", "blocking_notifier_head"),
        ("netdev_chain", "raw_notifier_head"),
    ] {
        let mut world = World::new();
        let first = world.at(head, "head", variable(chain));
        world.set(first, world.object("notifier_block", OBJECT, &[("next", OBJECT + 0x100)]));
        let slot = world.at("notifier_block", "notifier_call", OBJECT + 0x100);
        world.hides(slot, &format!("hidden notifier, {chain}"));
    }
}

#[test]
fn formats() {
    let mut world = World::new();
    world.link(variable("formats"), world.at("linux_binfmt", "lh", OBJECT));
    let slot = world.at("linux_binfmt", "load_binary", OBJECT);
    world.hides(slot, "hidden binary format, 0xffff888000010000");
}

#[test]
fn packet_handlers() {
    for list in [variable("ptype_base") + 16 * 15, variable("ptype_all")] {
        let mut world = World::new();
        world.link(list, world.at("packet_type", "list", OBJECT));
        for function in ["func", "id_match", "list_func"] {
            let slot = world.at("packet_type", function, OBJECT);
            world.hides(slot, "hidden packet handler, 0xffff888000010000");
        }
    }
    let mut world = World::new();
    world.link(variable("offload_base"), world.at("packet_offload", "list", OBJECT));
    let slot = world.at("packet_offload", "callbacks.gro_receive", OBJECT);
    world.hides(slot, "hidden packet handler, 0xffff888000010000");
}

#[test]
fn what_is_of_the_image_does_not_change_while_it_is_not_linked() {
    let mut world = World::new();
    let list = variable("ptype_all");
    world.object("packet_type", TABLE, &[("func", HANDLER)]);
    world.link(list, world.at("packet_type", "list", TABLE));
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(list, list);
    world.object("packet_type", TABLE, &[("func", CODE)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    world.link(list, world.at("packet_type", "list", TABLE));
    let line = "operations changed, table: handler, 0xffffffffc0000000, module evil";
    assert_eq!(world.look(PASSES), [line]);
}

#[test]
fn a_place_of_a_module_that_went_is_anothers() {
    let mut world = World::new();
    world.set(MODULE + 144, OBJECT);
    let place = variable("inet_protos") + 8 * 132;
    world.set(place, OBJECT);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(place, 0);
    assert_eq!(world.look(1), [""; 0]);
    world.set(place, OBJECT + 0x100);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
}

#[test]
fn a_place_of_a_module_whose_memory_is_anothers_now_is_anothers() {
    let mut world = World::new();
    world.set(MODULE + 144, OBJECT);
    let place = variable("inet_protos") + 8 * 132;
    world.set(place, OBJECT);
    assert_eq!(world.look(PASSES), [""; 0]);
    // The module leaves, another one comes, and takes both.
    let other = MODULE + 0x1000;
    for word in 0..0x200 {
        world.set(other + word * 8, world.memory.get(fake::physical(MODULE + word * 8)));
    }
    world.link(MODULES, other);
    world.set(place, OBJECT + 0x100);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    world.set(place, OBJECT + 0x200);
    assert_eq!(world.look(PASSES).len(), 1);
}

#[test]
fn a_pointer_that_always_leads_elsewhere_is_found() {
    let mut world = World::new();
    world.link(variable("formats"), world.at("linux_binfmt", "lh", OBJECT));
    let slot = world.at("linux_binfmt", "load_binary", OBJECT);
    let passes = 4 * u64::from(PASSES);
    let lines: Vec<_> = (1..=passes)
        .flat_map(|pass| {
            world.set(slot, NOBODY + pass);
            world.look(1)
        })
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let last = format!("{:#x} in no listed module", NOBODY + passes);
    assert!(lines[0].ends_with(&last), "{lines:?}");
}

#[test]
fn more_suspects_than_there_is_room_for_are_counted() {
    let mut world = World::new();
    world.link(variable("net_namespace_list"), world.at("net", "list", OBJECT));
    let entries = OBJECT + 0x1000;
    world.set(world.at("net", "nf.hooks_ipv4", OBJECT), entries);
    world.object("nf_hook_entries", entries, &[("num_hook_entries", 600)]);
    let first = world.at("nf_hook_entries", "hooks", entries);
    (0..600).for_each(|number| world.set(first + 24 * number, NOBODY));
    assert_eq!(world.look(PASSES).len(), 512);
    assert_eq!(world.check.coverage.unjudged, 88);
    assert_eq!(world.look(PASSES), [""; 0]);
    assert_eq!(world.check.coverage.unjudged, 88);
}

#[test]
fn suspects_that_change_at_each_pass_do_not_keep_others_out() {
    let mut world = World::new();
    let block = world.object("notifier_block", OBJECT, &[("notifier_call", NOBODY)]);
    world.set(world.at("atomic_notifier_head", "head", variable("die_chain")), block);
    world.link(variable("net_namespace_list"), world.at("net", "list", OBJECT + 0x100));
    let entries = OBJECT + 0x1000;
    (0..0x1000).for_each(|word| world.set(entries + 8 * word, NOBODY));
    // A thousand hooks come before the notifier, each pass elsewhere.
    let found = (0..40).find_map(|pass| {
        let place = entries + 8 * (pass % 3);
        let number = world.at("nf_hook_entries", "num_hook_entries", place);
        world.set(number, 1000);
        world.set(world.at("net", "nf.hooks_ipv4", OBJECT + 0x100), place);
        let lines = world.look(1);
        world.set(number, NOBODY);
        lines.into_iter().find(|line| !line.contains("netfilter"))
    });
    let owner = "0xffffffffc1234560 in no listed module";
    let line = format!("hidden notifier, die_chain: , 0xffffffffc1234560, {owner}");
    assert_eq!(found, Some(line));
}

#[test]
fn the_first_namespace_is_visited_unlisted() {
    let mut world = World::new();
    let initial = variable("init_net");
    let entries = OBJECT + 0x1000;
    world.object("nf_hook_entries", entries, &[("num_hook_entries", 1)]);
    world.object("net", initial, &[("nf.hooks_ipv4", entries)]);
    let first = world.at("nf_hook_entries", "hooks", entries);
    world.hides(first, &format!("hidden netfilter hook, {first:#x}"));
    // And its devices.
    let device = world.object("net_device", OBJECT + 0x3000, &[("nd_net.net", initial)]);
    world.link(
        world.at("net", "dev_base_head", initial),
        world.at("net_device", "dev_list", device),
    );
    let slot = world.at("net_device", "rx_handler", device);
    world.hides(slot, &format!("hidden packet handler, {device:#x}"));
}

#[test]
fn netfilter() {
    let mut world = World::new();
    world.link(variable("net_namespace_list"), world.at("net", "list", OBJECT));
    let entries = OBJECT + 0x1000;
    world.set(world.at("net", "nf.hooks_ipv4", OBJECT) + 32, entries);
    world.object("nf_hook_entries", entries, &[("num_hook_entries", 2)]);
    let second = world.at("nf_hook_entries", "hooks", entries) + 24;
    let slot = world.at("nf_hook_entry", "hook", second);
    world.hides(slot, &format!("hidden netfilter hook, {second:#x}"));
}

/// The last of 40 network devices, more than a part visits. A namespace without devices comes before theirs.
fn network_device(world: &World) -> u64 {
    let list = |namespace| world.at("net", "list", namespace);
    let devices = |namespace| world.at("net", "dev_base_head", namespace);
    let (empty, own) = (OBJECT + 0x3000, OBJECT + 0x4000);
    world.set(variable("net_namespace_list"), list(empty));
    world.set(devices(empty), devices(empty));
    world.set(list(empty), list(own));
    world.set(list(own), variable("net_namespace_list"));
    let (mut before, mut device) = (devices(own), OBJECT + 0x6000);
    for _ in 0..40 {
        device += 0x200;
        world.object("net_device", device, &[("nd_net.net", own), ("netdev_ops", TABLE)]);
        let link = world.at("net_device", "dev_list", device);
        world.set(before, link);
        before = link;
    }
    world.set(before, devices(own));
    for list in ["ptype_all", "ptype_specific"] {
        let head = world.at("net_device", list, device);
        world.set(head, head);
    }
    device
}

#[test]
fn handlers_of_one_device() {
    let mut world = World::new();
    let device = network_device(&world);
    let slot = world.at("net_device", "rx_handler", device);
    world.hides(slot, &format!("hidden packet handler, {device:#x}"));
    for list in ["ptype_all", "ptype_specific"] {
        let mut world = World::new();
        let device = network_device(&world);
        world.link(world.at("net_device", list, device), world.at("packet_type", "list", OBJECT));
        let slot = world.at("packet_type", "func", OBJECT);
        world.hides(slot, "hidden packet handler, 0xffff888000010000");
    }
    for place in ["nf_hooks_egress", "nf_hooks_ingress"] {
        let mut world = World::new();
        let device = network_device(&world);
        let entries = world.object("nf_hook_entries", OBJECT, &[("num_hook_entries", 1)]);
        world.object("net_device", device, &[(place, entries)]);
        let first = world.at("nf_hook_entries", "hooks", entries);
        let slot = world.at("nf_hook_entry", "hook", first);
        world.hides(slot, &format!("hidden netfilter hook, {first:#x}"));
    }
}

#[test]
fn operations_of_devices() {
    let mut world = World::new();
    let device = network_device(&world);
    world.object("net_device", device, &[("name", u64::from_le_bytes(*b"eth0\0\0\0\0"))]);
    for member in ["header_ops", "netdev_ops"] {
        for table in [DATA + 0x20, TABLE] {
            world.object("net_device", device, &[(member, table)]);
            assert_eq!(world.look(2 * PASSES), [""; 0]);
        }
        world.object("net_device", device, &[(member, DIRECT + 0x3000)]);
        let hidden = "hidden device operations, network device eth0: , 0xffff888000003000, \
                      0xffff888000003000 in no listed module";
        assert_eq!(world.look(PASSES), [hidden]);
        world.object("net_device", device, &[(member, TABLE)]);
    }
}

#[test]
fn handlers_by_protocol() {
    for (table, structure, function) in [
        ("inet6_offloads", "net_offload", "callbacks.gro_receive"),
        ("inet_protos", "net_protocol", "err_handler"),
        ("inet_protos", "net_protocol", "handler"),
    ] {
        let mut world = World::new();
        // Its data is where the test can write.
        world.set(MODULE + 144, OBJECT);
        world.set(variable(table) + 8 * 255, OBJECT);
        world.hides(
            world.at(structure, function, OBJECT),
            "hidden protocol handler, 0xffff888000010000",
        );
        // One of the kernel's own does not change.
        world.set(variable(table) + 8 * 6, TABLE);
        world.object(structure, TABLE, &[(function, HANDLER)]);
        assert_eq!(world.look(PASSES), [""; 0]);
        world.object(structure, TABLE, &[(function, CODE)]);
        let line = "operations changed, table: handler, 0xffffffffc0000000, module evil";
        assert_eq!(world.look(PASSES), [line]);
        // Nor is another one in its place.
        world.set(variable(table) + 8 * 6, OBJECT);
        let line = format!("operations changed, {table}+0x30: table, {OBJECT:#x}, module evil");
        assert_eq!(world.look(PASSES), [line]);
    }
}

#[test]
fn operations_of_unlisted_sockets() {
    let mut world = World::new();
    let tcp = [("name", u64::from_le_bytes(*b"TCP\0\0\0\0\0")), ("recvmsg", HANDLER)];
    world.object("proto", variable("tcp_prot"), &tcp);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.object("proto", variable("tcp_prot"), &[("recvmsg", CODE)]);
    let line = "operations changed, sockets of TCP: handler, 0xffffffffc0000000, module evil";
    assert_eq!(world.look(PASSES), [line]);
}

#[test]
fn operations_of_sockets() {
    for function in ["close", "recvmsg", "unhash"] {
        let mut world = World::new();
        let list = variable("proto_list");
        world.object("proto", OBJECT, &[("name", u64::from_le_bytes(*b"RAW\0\0\0\0\0"))]);
        world.link(list, world.at("proto", "node", OBJECT));
        world.hides(world.at("proto", function, OBJECT), "hidden socket operation, sockets of RAW");
        let tcp = [("name", u64::from_le_bytes(*b"TCP\0\0\0\0\0")), (function, HANDLER)];
        world.object("proto", TABLE, &tcp);
        world.link(list, world.at("proto", "node", TABLE));
        assert_eq!(world.look(PASSES), [""; 0]);
        world.object("proto", TABLE, &[(function, CODE)]);
        let line = "operations changed, sockets of TCP: handler, 0xffffffffc0000000, module evil";
        assert_eq!(world.look(PASSES), [line]);
    }
}

#[test]
fn breakpoints() {
    let mut world = World::new();
    world.set(variable("nr_cpu_ids"), 2);
    let area = DIRECT + 0x1_8000;
    world.set(variable("__per_cpu_offset") + 8, area);
    world.set(area + 0x6000 + 8 * 3, OBJECT);
    let attributes = world.at("perf_event", "attr", OBJECT);
    let of_code = [("bp_addr", GETDENTS + 4), ("bp_type", 4)];
    world.object("perf_event_attr", attributes, &[("bp_addr", TEXT + 0x604), ("bp_type", 4)]);
    let slot = world.at("perf_event", "overflow_handler", OBJECT);
    world.hides(slot, "hidden breakpoint handler, breakpoint at other+0x4");
    // A module's, in a function that says what exists.
    world.object("perf_event_attr", attributes, &of_code);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    world.set(slot, CODE + 0x10);
    let by = "by breakpoint at __x64_sys_getdents64+0x4";
    assert_eq!(
        world.look(PASSES),
        [format!(
            "sensitive function hooked, __x64_sys_getdents64+0x4: , {by}, which can change \
             listings of directories, module evil"
        )]
    );
    // One that waits for a write there; one without an address.
    for other in [[of_code[0], ("bp_type", 2)], [("bp_addr", 0), of_code[1]]] {
        world.object("perf_event_attr", attributes, &other);
        assert_eq!(world.look(2 * PASSES), [""; 0]);
    }
}

#[test]
fn handlers_of_inputs() {
    let mut world = World::new();
    let list = variable("input_handler_list");
    let name = OBJECT + 0x1000;
    world.set(name, u64::from_le_bytes(*b"kbd\0\0\0\0\0"));
    world.object("input_handler", OBJECT, &[("name", name)]);
    world.link(list, world.at("input_handler", "node", OBJECT));
    for function in ["event", "events", "filter", "start"] {
        let slot = world.at("input_handler", function, OBJECT);
        world.hides(slot, "hidden input handler, input handler kbd");
    }
    // The kernel's own do not change.
    world.object("input_handler", TABLE, &[("name", name), ("event", HANDLER)]);
    world.link(list, world.at("input_handler", "node", TABLE));
    assert_eq!(world.look(PASSES), [""; 0]);
    world.object("input_handler", TABLE, &[("event", CODE)]);
    let line = "operations changed, input handler kbd: handler, 0xffffffffc0000000, module evil";
    assert_eq!(world.look(PASSES), [line]);
}

#[test]
fn answers_about_sockets() {
    let mut world = World::new();
    // A module's: its data is where the test can write.
    world.set(MODULE + 144, OBJECT);
    let slot = variable("sock_diag_handlers") + 8 * 45;
    world.set(slot, OBJECT);
    for function in ["destroy", "dump", "get_info"] {
        let function = world.at("sock_diag_handler", function, OBJECT);
        world.hides(function, "hidden answer about sockets, 0xffff888000010000");
    }
    // Another one in the place of one that is still there.
    world.set(slot, OBJECT + 0x100);
    let line = format!(
        "operations changed, sock_diag_handlers+0x168: {OBJECT:#x}, {:#x}, module evil",
        OBJECT + 0x100
    );
    assert_eq!(world.look(PASSES), [line]);
    // A module that went, and came again elsewhere.
    world.set(slot, 0);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(slot, OBJECT + 0x200);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
}

#[test]
fn operations_of_files_of_devices() {
    let mut world = World::new();
    let name = OBJECT + 0x1000;
    world.set(name, u64::from_le_bytes(*b"abc\0\0\0\0\0"));
    let driver = world.object("tty_driver", OBJECT, &[("name", name)]);
    world.link(variable("tty_drivers"), world.at("tty_driver", "tty_drivers", driver));
    let device = world.object("miscdevice", OBJECT + 0x2000, &[("name", name)]);
    world.link(variable("misc_list"), world.at("miscdevice", "list", device));
    let console = variable("console_cdev");
    for (slot, object) in [
        (world.at("tty_driver", "ops", driver), "terminals of abc"),
        (world.at("miscdevice", "fops", device), "device abc"),
        (world.at("cdev", "ops", console), "console_cdev"),
    ] {
        world.set(slot, TABLE);
        assert_eq!(world.look(PASSES), [""; 0], "{object}");
        world.set(slot, DATA);
        let line = format!("operations changed, {object}: table, {DATA:#x}, module evil");
        assert_eq!(world.look(PASSES), [line]);
        world.set(slot, DIRECT + 0x3000);
        let hidden = format!(
            "hidden operations, {object}: , 0xffff888000003000, \
             0xffff888000003000 in no listed module"
        );
        assert_eq!(world.look(PASSES), [hidden]);
        world.set(slot, TABLE);
        assert_eq!(world.look(PASSES), [""; 0], "{object}");
    }
    // Other devices in the same memory; the last has the same number, and its name is where the other one's was.
    world.object("miscdevice", device, &[("fops", DATA), ("minor", 7)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    world.set(name, u64::from_le_bytes(*b"abd\0\0\0\0\0"));
    world.object("miscdevice", device, &[("fops", TABLE)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    // What is behind a name's end belongs to nobody.
    world.set(name, u64::from_le_bytes(*b"abd\0xyz\0"));
    world.object("miscdevice", device, &[("fops", DATA)]);
    let line = format!("operations changed, device abd: table, {DATA:#x}, module evil");
    assert_eq!(world.look(PASSES), [line]);
}

#[test]
fn kprobes() {
    let mut world = World::new();
    let table = variable("kprobe_table") + 8 * 63;
    let probe = world.object("kprobe", OBJECT, &[("addr", TEXT + 0x604)]);
    world.set(table, world.at("kprobe", "hlist", probe));
    let slot = world.at("kprobe", "post_handler", probe);
    world.hides(slot, "hidden kprobe handler, kprobe of other+0x4");
    // The function of a kretprobe, and one of several probes at one instruction.
    world.object("kprobe", probe, &[("pre_handler", TEXT + 0x490)]);
    let slot = world.at("kretprobe", "handler", probe) - world.offsets["kretprobe.kp"];
    world.hides(slot, "hidden kprobe handler, kprobe of other+0x4");
    let another = world.object("kprobe", OBJECT + 0x1000, &[("addr", TEXT + 0x600)]);
    world.object("kprobe", probe, &[("pre_handler", TEXT + 0x480)]);
    world.link(world.at("kprobe", "list", probe), world.at("kprobe", "list", another));
    let slot = world.at("kprobe", "pre_handler", another);
    world.hides(slot, "hidden kprobe handler, kprobe of other");
}

#[test]
fn timers_and_delayed_work() {
    let mut world = World::new();
    let area = DIRECT + 0x2_0000;
    world.set(variable("nr_cpu_ids"), 2);
    world.set(variable("__per_cpu_offset") + 8, area);
    let base = area + 0x40;
    let timer = world.at("timer_list", "entry", OBJECT) - world.offsets["timer_list.entry"];
    world.set(world.at("timer_base", "pending_map", base) + 8, 1 << 3);
    let list = world.at("timer_base", "vectors", base) + 8 * 67;
    world.set(list, world.at("timer_list", "entry", timer));
    let slot = world.at("timer_list", "function", timer);
    world.hides(slot, "hidden timer, 0xffff888000010000");
    world.set(slot, TEXT + 0x4a0);
    let work = world.offsets["delayed_work.work.func"] - world.offsets["delayed_work.timer"];
    world.hides(timer + work, "hidden timer, 0xffff888000010000");
}

#[test]
fn timers_of_high_resolution() {
    let mut world = World::new();
    let area = DIRECT + 0x2_0000;
    world.set(variable("nr_cpu_ids"), 2);
    world.set(variable("__per_cpu_offset") + 8, area);
    let base = world.object("hrtimer_cpu_base", area + 0x4000, &[("active_bases", 1 << 5)]);
    let clock = world.at("hrtimer_cpu_base", "clock_base", base) + 5 * 24;
    let root = world.at("hrtimer_clock_base", "active.rb_root.rb_root.rb_node", clock);
    let node = |timer| world.at("hrtimer", "node.node", timer);
    // The second timer is the first one's right child.
    let (first, second) = (node(OBJECT), node(OBJECT + 0x100));
    world.set(root, first);
    world.set(first + 8, second);
    world.set(second, first);
    let slot = world.at("hrtimer", "function", OBJECT + 0x100);
    world.hides(slot, "hidden high-resolution timer, 0xffff888000010100");
    // The clock has no timer.
    world.set(slot, NOBODY);
    world.object("hrtimer_cpu_base", base, &[("active_bases", 1 << 4)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
}

#[test]
fn kernel_threads() {
    let mut world = World::new();
    let (parent, thread) = (OBJECT + 0x1000, OBJECT + 0x2000);
    world.set(variable("kthreadd_task"), parent);
    let members = [("worker_private", thread), ("comm", u64::from_le_bytes(*b"kworm\0\0\0"))];
    world.object("task_struct", OBJECT, &members);
    let (head, link) =
        (world.at("task_struct", "children", parent), world.at("task_struct", "sibling", OBJECT));
    world.link(head, link);
    let slot = world.at("kthread", "threadfn", thread);
    world.hides(slot, "hidden kernel thread, thread kworm");
}

#[test]
fn listing_has_what_leads_out_of_the_kernel() {
    let world = World::new();
    let probe = world.object("kprobe", OBJECT, &[("addr", GETDENTS + 4), ("pre_handler", CODE)]);
    world.set(variable("kprobe_table"), world.at("kprobe", "hlist", probe));
    world.link(variable("formats"), world.at("linux_binfmt", "lh", OBJECT + 0x1000));
    world.object(
        "linux_binfmt",
        OBJECT + 0x1000,
        &[("load_binary", NOBODY), ("core_dump", HANDLER)],
    );
    let profile = Profile::decode(&world.profile).unwrap();
    let listed = listing::list(&Kernel::new(&profile, &world.memory)).unwrap();
    let row = |hook: &listing::Hook| {
        let function = hook.function.as_deref().unwrap_or("-");
        let owner = hook.owner.as_deref().unwrap_or("nobody");
        format!("{} {} {function} {:#x} {owner}", hook.kind, hook.object, hook.target)
    };
    assert_eq!(
        listed.hooks.iter().map(row).collect::<Vec<_>>(),
        [
            "binary format 0xffff888000011000 - 0xffffffffc1234560 nobody",
            "kprobe handler kprobe of __x64_sys_getdents64+0x4 __x64_sys_getdents64+0x4 \
             0xffffffffc0000000 module evil",
        ]
    );
    assert!(listed.own > 0 && listed.is_complete);
    // A list without an end.
    let link = world.at("linux_binfmt", "lh", OBJECT + 0x1000);
    world.set(link, link);
    assert!(!listing::list(&Kernel::new(&profile, &world.memory)).unwrap().is_complete);
}

#[test]
fn a_listed_module_may_not_hook_what_user_space_is_told() {
    let mut world = World::new();
    let probe = world.object("kprobe", OBJECT, &[("addr", GETDENTS + 4), ("pre_handler", CODE)]);
    world.set(variable("kprobe_table"), world.at("kprobe", "hlist", probe));
    let line = |by: &str| {
        format!(
            "sensitive function hooked, __x64_sys_getdents64+0x4: , by {by}, which can change \
             listings of directories, module evil"
        )
    };
    assert_eq!(world.look(PASSES), [line("kprobe of __x64_sys_getdents64+0x4")]);
    assert!(Check::<FakeMemory>::stands(&world.check, SENSITIVE, GETDENTS + 4));
    // In the middle of the function.
    world.object("kprobe", probe, &[("addr", GETDENTS + 0x40)]);
    assert_eq!(world.look(PASSES).len(), 1);
    // One behind those that list.
    world.object("kprobe", probe, &[("addr", TEXT + 0x684)]);
    let lines = world.look(PASSES);
    assert!(matches!(&lines[..], [line] if line.contains("hooked, proc_fill_cache")), "{lines:?}");
    // Not a function of the list; a handler of the kernel's own.
    for (address, handler) in [(TEXT + 0x600, CODE), (GETDENTS, HANDLER)] {
        world.object("kprobe", probe, &[("addr", address), ("pre_handler", handler)]);
        assert_eq!(world.look(2 * PASSES), [""; 0]);
    }
    // By ftrace.
    let mut world = World::new();
    let (hashes, filter, lists) = (OBJECT + 0x1000, OBJECT + 0x2000, OBJECT + 0x3000);
    world.object("ftrace_ops", OBJECT, &[("func", CODE), ("func_hash", hashes)]);
    world.set(variable("ftrace_ops_list"), OBJECT);
    world.object("ftrace_ops_hash", hashes, &[("filter_hash", filter)]);
    world.object("ftrace_hash", filter, &[("size_bits", 2), ("count", 1), ("buckets", lists)]);
    let entry = world.object("ftrace_func_entry", OBJECT + 0x4000, &[("ip", GETDENTS + 4)]);
    world.set(lists + 24, world.at("ftrace_func_entry", "hlist", entry));
    assert_eq!(world.look(PASSES), [line("ftrace")]);
    world.object("ftrace_func_entry", entry, &[("ip", TEXT + 0x600)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    // By an fprobe, whose handler Linux's own code calls.
    let probe = world.at("fprobe", "ops", OBJECT) - OBJECT;
    world.object("ftrace_ops", OBJECT, &[("func", TEXT + 0x4b0)]);
    world.object("fprobe", OBJECT - probe, &[("exit_handler", CODE)]);
    world.object("ftrace_func_entry", entry, &[("ip", GETDENTS + 4)]);
    assert_eq!(world.look(PASSES), [line("ftrace")]);
    world.object("fprobe", OBJECT - probe, &[("exit_handler", NOBODY)]);
    let hidden = world.look(PASSES);
    assert!(hidden.len() == 1 && hidden[0].starts_with("hidden ftrace handler, "), "{hidden:?}");
    world.object("fprobe", OBJECT - probe, &[("exit_handler", 0)]);
    world.object("ftrace_ops", OBJECT, &[("func", CODE)]);
    world.look(PASSES);
    world.object("ftrace_ops_hash", hashes, &[("filter_hash", 0)]);
    let all = world.look(PASSES);
    assert!(all.iter().all(|line| line.contains("every function")) && all.len() == 1, "{all:?}");
}

#[test]
fn sensitive_functions_are_found_in_any_filter_and_in_the_code() {
    let mut world = World::new();
    let (hashes, filter, lists) = (OBJECT + 0x1000, OBJECT + 0x2000, OBJECT + 0x3000);
    let trampoline = CODE + 0x800;
    world.object("ftrace_ops", OBJECT, &[("func", CODE), ("func_hash", hashes)]);
    world.set(variable("ftrace_ops_list"), OBJECT);
    world.object("ftrace_ops_hash", hashes, &[("filter_hash", filter)]);
    world.object("ftrace_hash", filter, &[("size_bits", 8), ("count", 1), ("buckets", lists)]);
    let other = world.object("ftrace_func_entry", OBJECT + 0x4000, &[("ip", TEXT + 0x600)]);
    let entry = world.object("ftrace_func_entry", OBJECT + 0x5000, &[("ip", GETDENTS + 4)]);
    let bucket = lists + 8 * crate::walk::hash(GETDENTS + 4, 8);
    world.set(bucket, world.at("ftrace_func_entry", "hlist", entry));
    let found = |world: &mut World, count| {
        let lines = world.look(2 * PASSES);
        assert_eq!(lines.len(), count, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("sensitive")), "{lines:?}");
    };
    let call = |world: &World, at: u64, target: u64| {
        let distance = target.wrapping_sub(at + 5) as u32;
        world.memory.put(fake::physical(at), &[&[CALL][..], &distance.to_le_bytes()].concat());
    };
    // More functions than are visited. One that calls nobody is not traced.
    let link = world.at("ftrace_func_entry", "hlist", other);
    world.set(lists, link);
    world.set(link, link);
    found(&mut world, 0);
    call(&world, GETDENTS + 4, TEXT + 0x700);
    found(&mut world, 1);
    // Neither in the filter nor called.
    world.set(link, 0);
    world.set(bucket, 0);
    found(&mut world, 0);
    // In a list that is longer than any of Linux's.
    world.set(bucket, link);
    world.set(link, link);
    found(&mut world, 1);
    world.set(bucket, 0);
    world.set(link, 0);
    found(&mut world, 0);
    for (at, target, count) in [(GETDENTS + 4, trampoline + 8, 0), (GETDENTS, trampoline, 1)] {
        call(&world, at, target);
        world.object("ftrace_ops", OBJECT, &[("trampoline", trampoline)]);
        found(&mut world, count);
    }
}

#[test]
fn a_filter_without_functions_or_of_another_form_means_all() {
    for (count, bits) in [(0, 2), (1, 13)] {
        let mut world = World::new();
        let (hashes, filter) = (OBJECT + 0x1000, OBJECT + 0x2000);
        world.object("ftrace_ops", OBJECT, &[("func", CODE), ("func_hash", hashes)]);
        world.set(variable("ftrace_ops_list"), OBJECT);
        world.object("ftrace_ops_hash", hashes, &[("filter_hash", filter)]);
        world.object("ftrace_hash", filter, &[("size_bits", bits), ("count", count)]);
        let lines = world.look(2 * PASSES);
        assert!(lines.len() == 1 && lines[0].contains("every function"), "{lines:?}");
    }
}

#[test]
fn operations_of_proc_do_not_change() {
    let mut world = World::new();
    let name = |text: &[u8; 8], at: u64| {
        world.set(at, u64::from_le_bytes(*text));
        at
    };
    let (first, second) = (name(b"net\0\0\0\0\0", OBJECT), name(b"tcp\0\0\0\0\0", OBJECT + 8));
    let (net, tcp) = (OBJECT + 0x1000, OBJECT + 0x2000);
    for (entry, parent, name) in [(net, variable("proc_root"), first), (tcp, net, second)] {
        let members =
            [("parent", parent), ("name", name), ("proc_ops", TABLE), ("low_ino", name & 0xff)];
        world.object("proc_dir_entry", entry, &members);
        let node = world.at("proc_dir_entry", "subdir_node", entry);
        world.set(world.at("proc_dir_entry", "subdir", parent), node);
    }
    assert_eq!(world.look(PASSES), [""; 0]);
    let slot = world.at("proc_dir_entry", "seq_ops", tcp);
    world.set(slot, TABLE);
    assert_eq!(world.look(PASSES), [""; 0]);
    // A listed module's table in place of the kernel's, then one of nobody.
    world.set(slot, DATA + 0x20);
    let changed = "operations changed, /proc/net/tcp: table, 0xffffffffc0001020, module evil";
    assert_eq!(world.look(PASSES), [changed]);
    assert!(Check::<FakeMemory>::stands(&world.check, CHANGED, tcp));
    world.set(slot, DIRECT + 0x3000);
    let hidden = "hidden operations, /proc/net/tcp: , 0xffff888000003000, \
                  0xffff888000003000 in no listed module";
    assert_eq!(world.look(PASSES), [hidden]);
    // Other entries in the same memory; the last has the same number, too.
    world.object("proc_dir_entry", tcp, &[("low_ino", 77), ("seq_ops", DATA)]);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(second, u64::from_le_bytes(*b"udp\0\0\0\0\0"));
    world.set(slot, TABLE);
    assert_eq!(world.look(PASSES), [""; 0]);
    // Another one whose name differs in its end.
    for (n, part) in [b"statisti", b"cs_of_rx", b"_queues\0"].into_iter().enumerate() {
        world.set(second + 8 * n as u64, u64::from_le_bytes(*part));
    }
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(second + 16, u64::from_le_bytes(*b"_packets"));
    world.set(second + 24, 0);
    world.set(slot, DATA);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(slot, TABLE);
    world.set(second, 0);
    assert_eq!(world.look(PASSES), [""; 0]);
    // The module of an entry is loaded again, elsewhere.
    world.set(slot, DATA);
    world.set(second, u64::from_le_bytes(*b"raw\0\0\0\0\0"));
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(MODULE + 144, DATA + 0x1_0000);
    world.set(slot, DATA + 0x1_0000);
    assert_eq!(world.look(PASSES), [""; 0]);
}

#[test]
fn operations_of_mounts_and_terminals_do_not_change() {
    let mut world = World::new();
    let (dentry, inode) = (OBJECT + 0x1000, OBJECT + 0x2000);
    world.object("super_block", OBJECT, &[("s_op", TABLE), ("s_root", dentry), ("s_dev", 7)]);
    world.object("dentry", dentry, &[("d_inode", inode)]);
    world.link(variable("super_blocks"), world.at("super_block", "s_list", OBJECT));
    assert_eq!(world.look(PASSES), [""; 0]);
    // Until it is born, its operations may change.
    world.object("super_block", OBJECT, &[("s_op", TABLE + 8), ("s_flags", 1 << 29)]);
    world.object("inode", inode, &[("i_fop", TABLE)]);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.object("inode", inode, &[("i_fop", DATA)]);
    let line = "operations changed, file system  (): table, 0xffffffffc0001000, module evil";
    assert_eq!(world.look(PASSES), [line]);
    // Another one in the same memory, whose root is no directory.
    world.object("inode", inode, &[("i_mode", 0o100_644), ("i_fop", TABLE)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);

    let mut world = World::new();
    let discipline = TABLE + 0x100;
    world.set(variable("tty_ldiscs") + 8, discipline);
    world.object("tty_ldisc_ops", discipline, &[("open", HANDLER)]);
    assert_eq!(world.look(PASSES), [""; 0]);
    world.object("tty_ldisc_ops", discipline, &[("open", CODE)]);
    let line = "operations changed, line discipline : handler, 0xffffffffc0000000, module evil";
    assert_eq!(world.look(PASSES), [line]);
    // A module gives up its discipline, and another one takes the number; nobody does so with the first.
    let mut world = World::new();
    world.set(MODULE + 144, OBJECT);
    let name = OBJECT + 0x1000;
    world.set(name, u64::from_le_bytes(*b"n_tty\0\0\0"));
    world.object("tty_ldisc_ops", OBJECT, &[("name", name)]);
    for (number, line) in [
        (26, None),
        (0, Some("operations changed, line discipline n_tty: __start___tracepoints_ptrs, 0xffff888000010000, module evil")),
    ] {
        world.set(variable("tty_ldiscs") + 8 * number, discipline);
        assert_eq!(world.look(PASSES), [""; 0]);
        world.set(variable("tty_ldiscs") + 8 * number, OBJECT);
        assert_eq!(world.look(PASSES), Vec::from_iter(line));
    }
}

#[test]
fn a_module_that_is_gone_before_the_report_is_not_reported() {
    let mut world = World::new();
    let probe = world.object("kprobe", OBJECT, &[("addr", GETDENTS + 4), ("pre_handler", CODE)]);
    world.set(variable("kprobe_table"), world.at("kprobe", "hlist", probe));
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.memory);
    while !matches!(world.check.stage, Stage::Report) {
        world.check.step(&kernel, &mut fake::CallBudget(1), &mut |_| {}, &mut 0);
    }
    world.memory.set(fake::physical(MODULES), MODULES);
    let mut reports = 0;
    while matches!(world.check.stage, Stage::Report) {
        world.check.step(&kernel, &mut fake::CallBudget(1), &mut |_| reports += 1, &mut 0);
    }
    assert_eq!(reports, 0);
}

#[test]
fn the_shortest_slices_are_enough_for_a_report() {
    let mut world = World::new();
    world.link(variable("formats"), world.at("linux_binfmt", "lh", OBJECT));
    world.set(world.at("linux_binfmt", "load_binary", OBJECT), NOBODY);
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.memory);
    let mut reports = 0;
    for _ in 0..2000 {
        world.check.step(&kernel, &mut fake::CallBudget(1), &mut |_| reports += 1, &mut 0);
    }
    assert_eq!(reports, 1);
}

#[test]
fn a_list_without_end_does_not_keep_the_check_from_others() {
    let mut world = World::new();
    let first = world.at("blocking_notifier_head", "head", variable("inetaddr_chain"));
    world.set(first, world.object("notifier_block", OBJECT, &[("next", OBJECT)]));
    let raw = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(raw, OBJECT + 0x100);
    let slot = world.at("notifier_block", "notifier_call", OBJECT + 0x100);
    world.hides(slot, "hidden notifier, netdev_chain");
    assert_eq!(world.check.coverage.unjudged, 1);
}

#[test]
fn memory_of_any_content_ends_every_pass() {
    let mut numbers = fake::RandomNumbers(3);
    for _ in 0..fake::rounds(300) {
        let mut world = World::new();
        for _ in 0..400 {
            let place = match numbers.below(3) {
                0 => TEXT + 0x1_0000 + 8 * numbers.below(0x200 * VARIABLES.len() as u64),
                _ => DIRECT + 0x1000 + 8 * numbers.below(0x800),
            };
            let value = match numbers.below(4) {
                0 => TEXT + 0x1_0000 + 8 * numbers.below(0x200 * VARIABLES.len() as u64),
                1 => numbers.next(),
                _ => DIRECT + 0x1000 + 8 * numbers.below(0x800),
            };
            world.set(place, value);
        }
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        // More lists without end than these worlds have.
        let bound = 40 * u64::from(MAX_PARTS);
        let mut budget = fake::CallBudget(bound);
        let step = world.check.step(&kernel, &mut budget, &mut |_| {}, &mut 0);
        assert!(matches!(step, Step::Done(_)));
        assert!(world.check.first.len() <= first::MAX_FIRST);
    }
}

#[test]
fn damaged_lists_of_the_network_end_every_pass() {
    let mut numbers = fake::RandomNumbers(5);
    for _ in 0..fake::rounds(300) {
        let mut world = World::new();
        let device = network_device(&world);
        let (socket, list) = (world.at("proto", "node", OBJECT), variable("proto_list"));
        world.link(list, socket);
        let mut places = std::vec![list, socket, variable("net_namespace_list")];
        for namespace in [OBJECT + 0x3000, OBJECT + 0x4000] {
            places
                .extend(["dev_base_head", "list"].map(|member| world.at("net", member, namespace)));
        }
        for device in (0..40).map(|number| device - 0x200 * number) {
            let members = ["dev_list", "nd_net.net", "nf_hooks_egress", "ptype_all"];
            places.extend(members.map(|member| world.at("net_device", member, device)));
        }
        places.extend([variable("inet_protos"), variable("inet6_offloads")]);
        for _ in 0..=numbers.below(8) {
            let place = places[numbers.below(places.len() as u64) as usize];
            let other = places[numbers.below(places.len() as u64) as usize];
            world.set(place, [other, other, other, numbers.next(), 0][numbers.below(5) as usize]);
        }
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        // The lists of devices, seen by three sources, and that of sockets.
        let mut budget = fake::CallBudget(5 * u64::from(MAX_PARTS));
        let step = world.check.step(&kernel, &mut budget, &mut |_| {}, &mut 0);
        assert!(matches!(step, Step::Done(_)));
    }
}
