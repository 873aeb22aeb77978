use super::*;
use crate::disarm::{Culprit, Plan, MAX_HOOKS};
use kyozon_abi::layer::MAX_REPAIR_WORDS;

const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

impl World {
    /// A world whose functions have code.
    pub(super) fn with_stubs() -> Self {
        let world = Self::new();
        let code = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &NOP, &[0x31, 0xc0, 0xe9]].concat();
        world.memory.put(fake::physical(NOTHING), &code);
        world.memory.put(fake::physical(ACCEPT), &[0xb8, 1, 0, 0, 0, 0xc3]);
        world
    }

    /// The plan for the owner of `address`.
    pub(super) fn plan(&mut self, address: u64) -> Plan {
        // Before the first pass, no owner is known.
        self.look(1);
        let none = Culprit { start: address, address, ..Culprit::default() };
        let culprit = self.culprit(address).unwrap_or(none);
        self.plan_for(culprit)
    }

    fn plan_for(&mut self, culprit: Culprit) -> Plan {
        assert!(Check::<FakeMemory>::disarm(&mut self.check, culprit));
        self.next_plan()
    }

    /// The owner of `address`, by what the last pass saw.
    fn culprit(&self, address: u64) -> Option<Culprit> {
        let profile = Profile::decode(&self.profile).unwrap();
        self.check.culprit(&Kernel::new(&profile, &self.memory), address)
    }

    /// The plan that was asked for first.
    fn next_plan(&mut self) -> Plan {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        for _ in 0..10 * PACE {
            let mut budget = fake::CallBudget(100_000);
            self.check.step(&kernel, &mut budget, &mut |_| {}, &mut 0);
            if let Some(plan) = Check::<FakeMemory>::plan(&mut self.check) {
                assert!(plan.removals.iter().all(|it| it.repair.words.len() <= MAX_REPAIR_WORDS));
                return plan;
            }
        }
        panic!("no plan");
    }

    /// Carries out the steps of a plan. Returns how many had words that differed.
    pub(super) fn carry_out(&self, plan: &Plan) -> usize {
        let mut changed = 0;
        for removal in &plan.removals {
            let words = &removal.repair.words;
            match words.iter().all(|word| self.memory.get(word.address) == word.expected) {
                true => words.iter().for_each(|word| self.memory.set(word.address, word.value)),
                false => changed += 1,
            }
        }
        changed
    }

    fn get(&self, address: u64) -> u64 {
        self.memory.get(fake::physical(address))
    }

    /// The hook at `slot` is taken out: afterwards, it leads to `stub`. One of another owner stays.
    fn takes_out(&mut self, slot: u64, stub: u64, kind: &str) {
        self.set(slot, NOBODY);
        assert_eq!(self.plan(CODE).removals, [], "{kind}: another owner's");
        self.set(slot, CODE + 0x10);
        let plan = self.plan(CODE);
        assert_eq!(plan.left, [], "{kind}");
        let hooks: Vec<_> = plan.removals.iter().map(|it| it.hook.as_str()).collect();
        assert_eq!(hooks.len(), 1, "{kind}: {hooks:?}");
        assert!(hooks[0].starts_with(&format!("{kind} at {slot:#x}: ")), "{hooks:?}");
        assert_eq!(plan.owner, "module evil");
        // The value changes meanwhile.
        self.set(slot, CODE + 0x20);
        assert_eq!((self.carry_out(&plan), self.get(slot)), (1, CODE + 0x20));
        let plan = self.plan(CODE);
        assert_eq!((self.carry_out(&plan), self.get(slot)), (0, stub));
        assert_eq!(self.plan(CODE).removals, [], "{kind}: nothing is left to do");
    }
}

#[test]
fn a_notifier_is_taken_out() {
    let mut world = World::with_stubs();
    let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    // A list without end.
    world.set(first, world.object("notifier_block", OBJECT, &[("next", OBJECT)]));
    let slot = world.at("notifier_block", "notifier_call", OBJECT);
    world.takes_out(slot, NOTHING, "notifier");
}

#[test]
fn a_kprobe_and_a_kretprobe_are_taken_out() {
    let mut world = World::with_stubs();
    let probe = world.object("kprobe", OBJECT, &[("addr", GETDENTS)]);
    world.set(variable("kprobe_table"), world.at("kprobe", "hlist", probe));
    let [before, after] =
        ["pre_handler", "post_handler"].map(|member| world.at("kprobe", member, probe));
    world.takes_out(before, NOTHING, "kprobe handler");
    world.takes_out(after, NOTHING, "kprobe handler");
    world.set(before, TEXT + 0x490);
    let slot = world.at("kretprobe", "handler", probe) - world.offsets["kretprobe.kp"];
    world.takes_out(slot, NOTHING, "kprobe handler");
    assert_eq!(world.get(before), TEXT + 0x490, "Linux's own handler stays");
}

/// Kprobes at one instruction: the one in the table, whose handler begins at `handler`, and `count` in its list.
fn several(world: &World, handler: u64, count: u64) -> Vec<u64> {
    let aggregate = world.object("kprobe", OBJECT, &[("addr", GETDENTS), ("pre_handler", handler)]);
    let bucket = variable("kprobe_table") + 8 * crate::walk::hash(GETDENTS, 6);
    world.set(bucket, world.at("kprobe", "hlist", aggregate));
    let link = |probe| world.at("kprobe", "list", probe);
    let probes: Vec<_> = (1..=count).map(|number| OBJECT + 0x100 * number).collect();
    let ring = core::iter::once(aggregate).chain(probes.iter().copied());
    let next = probes.iter().copied().chain([aggregate]);
    ring.zip(next).for_each(|(probe, next)| world.set(link(probe), link(next)));
    probes
}

#[test]
fn every_kprobe_of_an_instruction_is_taken_out() {
    // Linux's own handler, and entered behind its first instruction.
    for handler in [TEXT + 0x480, TEXT + 0x484] {
        let mut world = World::with_stubs();
        let probes = several(&world, handler, 400);
        let slots = [0, 399].map(|number| world.at("kprobe", "pre_handler", probes[number]));
        slots.iter().for_each(|slot| world.set(*slot, CODE));
        let plan = world.plan(CODE);
        assert_eq!((plan.removals.len(), plan.left.len()), (2, 0), "{plan:?}");
        assert_eq!(world.carry_out(&plan), 0);
        assert_eq!(slots.map(|slot| world.get(slot)), [NOTHING; 2]);
    }
}

#[test]
fn probes_of_others_at_the_same_instruction_stay() {
    let mut world = World::with_stubs();
    several(&world, CODE, 2);
    let plan = world.plan(CODE);
    let slot = world.at("kprobe", "pre_handler", OBJECT);
    assert_eq!((world.carry_out(&plan), world.get(slot)), (0, TEXT + 0x480));
}

#[test]
fn a_kretprobe_with_a_handler_entered_behind_its_beginning_is_taken_out() {
    let mut world = World::with_stubs();
    let probe = world.object("kprobe", OBJECT, &[("addr", GETDENTS)]);
    world.set(variable("kprobe_table"), world.at("kprobe", "hlist", probe));
    world.set(world.at("kprobe", "pre_handler", probe), TEXT + 0x494);
    let slot = world.at("kretprobe", "handler", probe) - world.offsets["kretprobe.kp"];
    world.takes_out(slot, NOTHING, "kprobe handler");
}

#[test]
fn a_pointer_in_two_words_is_taken_out() {
    let mut world = World::with_stubs();
    let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(first, OBJECT + 4);
    let slot = world.at("notifier_block", "notifier_call", OBJECT + 4);
    world.memory.put(fake::physical(slot), &CODE.to_le_bytes());
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (1, 0), "{plan:?}");
    assert_eq!(world.carry_out(&plan), 0);
    let [low, high] = [slot - 4, slot + 4].map(|at| world.get(at));
    assert_eq!(low >> 32 | high << 32, NOTHING);
}

#[test]
fn a_netfilter_hook_is_taken_out_and_stays_registered() {
    let mut world = World::with_stubs();
    world.link(variable("net_namespace_list"), world.at("net", "list", OBJECT));
    let entries = OBJECT + 0x1000;
    world.set(world.at("net", "nf.hooks_ipv4", OBJECT), entries);
    world.object("nf_hook_entries", entries, &[("num_hook_entries", 2)]);
    let [own, other] = [0, 24].map(|at| world.at("nf_hook_entries", "hooks", entries) + at);
    world.set(other, HANDLER);
    world.takes_out(own, ACCEPT, "netfilter hook");
    assert_eq!(world.get(other), HANDLER);
}

#[test]
fn a_timer_is_taken_out() {
    let mut world = World::with_stubs();
    let area = DIRECT + 0x2_0000;
    world.set(variable("nr_cpu_ids"), 1);
    world.set(variable("__per_cpu_offset"), area);
    let base = area + 0x40;
    world.set(world.at("timer_base", "pending_map", base), 1);
    world.set(world.at("timer_base", "vectors", base), world.at("timer_list", "entry", OBJECT));
    let slot = world.at("timer_list", "function", OBJECT);
    world.takes_out(slot, NOTHING, "timer");
    // Delayed work: its timer is Linux's own.
    world.set(slot, TEXT + 0x4a0);
    let work = world.offsets["delayed_work.work.func"] - world.offsets["delayed_work.timer"];
    world.set(OBJECT + work, CODE);
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (0, 1), "{plan:?}");
}

/// A user of ftrace with a filter for `getdents64` and a trampoline of its own, which calls `called` at `call`.
fn user(world: &World, call: u64, called: u64) -> u64 {
    let (hashes, filter, lists) = (OBJECT + 0x1000, OBJECT + 0x2000, OBJECT + 0x3000);
    let trampoline = TEXT + 0x3000;
    let members = [("func", CODE), ("func_hash", hashes), ("trampoline", trampoline)];
    world.object("ftrace_ops", OBJECT, &members);
    world.set(variable("ftrace_ops_list"), OBJECT);
    world.object("ftrace_ops_hash", hashes, &[("filter_hash", filter)]);
    world.object("ftrace_hash", filter, &[("size_bits", 1), ("count", 2), ("buckets", lists)]);
    for (number, at) in [TEXT + 0x600, GETDENTS].into_iter().enumerate() {
        let entry = OBJECT + 0x4000 + 0x100 * number as u64;
        world.object("ftrace_func_entry", entry, &[("ip", at)]);
        world.set(lists + 8 * number as u64, world.at("ftrace_func_entry", "hlist", entry));
    }
    let next = trampoline + call + 5;
    let distance = called.wrapping_sub(next) as u32;
    let code = [&[CALL][..], &distance.to_le_bytes()].concat();
    world.memory.put(fake::physical(trampoline + call), &code);
    trampoline
}

#[test]
fn a_user_of_ftrace_is_taken_out_with_the_call_in_its_trampoline() {
    for call in [CALL_AT, REGS_CALL_AT] {
        let mut world = World::with_stubs();
        let trampoline = user(&world, call, CODE);
        let saved = world.at("ftrace_ops", "saved_func", OBJECT);
        world.set(saved, CODE);
        let plan = world.plan(CODE);
        let slot = world.at("ftrace_ops", "func", OBJECT);
        let hook = format!("ftrace handler at {slot:#x}: __x64_sys_getdents64");
        assert_eq!(plan.removals.len(), 1, "{plan:?}");
        assert_eq!(plan.removals[0].hook, hook, "the sensitive one of its functions");
        assert_eq!(world.carry_out(&plan), 0);
        assert_eq!([slot, saved].map(|at| world.get(at)), [TRACE, TRACE]);
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        assert_eq!(super::super::tracers::callee(&kernel, trampoline + call), Some(TRACE));
        assert_eq!(world.plan(CODE).removals, []);
    }
}

#[test]
fn a_trampoline_that_calls_something_else_than_the_users_function_is_taken_out() {
    let mut world = World::with_stubs();
    let trampoline = user(&world, CALL_AT, CODE);
    world.object("ftrace_ops", OBJECT, &[("func", TRACE)]);
    let plan = world.plan(CODE);
    let hook = format!("ftrace trampoline at {:#x}: ftrace", trampoline + CALL_AT);
    assert_eq!(plan.removals.iter().map(|it| &it.hook).collect::<Vec<_>>(), [&hook]);
    assert_eq!(world.carry_out(&plan), 0);
    assert_eq!(world.plan(CODE).removals, []);
}

#[test]
fn a_trampoline_that_reads_the_function_stays() {
    let mut world = World::with_stubs();
    user(&world, CALL_AT, TEXT + 0x7c0);
    let plan = world.plan(CODE);
    assert_eq!(plan.removals[0].repair.words.len(), 1);
    // One that Linux changes at the moment, or that is the module's own.
    let mut world = World::with_stubs();
    user(&world, CALL_AT, HANDLER);
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (0, 1));
    assert_eq!(plan.left[0].why, "its trampoline has another form");
}

#[test]
fn operations_are_put_back_if_they_were_seen_before() {
    let mut world = World::with_stubs();
    let (dentry, inode) = (OBJECT + 0x1000, OBJECT + 0x2000);
    let members = [("s_op", TABLE), ("s_root", dentry), ("s_flags", 1 << 29)];
    world.object("super_block", OBJECT, &members);
    world.object("dentry", dentry, &[("d_inode", inode)]);
    world.object("inode", inode, &[("i_fop", TABLE + 8), ("i_op", DATA + 0x100)]);
    world.link(variable("super_blocks"), world.at("super_block", "s_list", OBJECT));
    world.look(1);
    let slot = world.at("inode", "i_fop", inode);
    world.set(slot, DATA);
    let plan = world.plan(CODE);
    let hook = format!("operations at {slot:#x}: file system  ()");
    assert_eq!(plan.removals.iter().map(|it| &it.hook).collect::<Vec<_>>(), [&hook]);
    assert_eq!(plan.left.len(), 1, "it was the module's from the beginning: {:?}", plan.left);
    assert_eq!((world.carry_out(&plan), world.get(slot)), (0, TABLE + 8));
    // A table of nobody, which passes report before the plan is made.
    let nobody = DIRECT + 0x3_0000;
    world.set(slot, nobody);
    assert_eq!(world.look(2 * PASSES).len(), 1);
    let plan = world.plan(nobody);
    assert_eq!((world.carry_out(&plan), world.get(slot)), (0, TABLE + 8));
    // Another object has come to the same memory meanwhile.
    world.object("super_block", OBJECT, &[("s_dev", 7)]);
    world.set(slot, DATA);
    world.look(1);
    assert_eq!(world.plan(CODE).removals, []);
}

/// A tracepoint whose static call leads to its only probe, or to its own function, from a trampoline and two places.
fn tracepoint(world: &World, leads_to: u64) -> u64 {
    let (tracepoint, key, probes) = (TEXT + 0x2300, TEXT + 0x2500, OBJECT);
    let trampoline = TEXT + 0x2600;
    world.memory.put(fake::physical(TRACEPOINTS), &0x200u32.to_le_bytes());
    let members = [
        ("funcs", probes),
        ("iterator", HANDLER),
        ("static_call_key", key),
        ("static_call_tramp", trampoline),
    ];
    world.object("tracepoint", tracepoint, &members);
    world.object("static_call_key", key, &[("func", leads_to), ("type", SITES | 1)]);
    world.object("tracepoint_func", probes, &[("func", CODE)]);
    // Two calls in a row, of which one begins in the word in which the other ends.
    for (number, (at, operation)) in places().into_iter().enumerate() {
        let distance = leads_to.wrapping_sub(at + 5) as u32;
        let code = [&[operation][..], &distance.to_le_bytes()].concat();
        world.memory.put(fake::physical(at), &code);
        let Some(number) = number.checked_sub(1) else { continue };
        let site = SITES + 8 * number as u64;
        world.memory.put(fake::physical(site), &(at.wrapping_sub(site) as u32).to_le_bytes());
        let of = key.wrapping_sub(site + 4) as u32 | number as u32;
        world.memory.put(fake::physical(site + 4), &of.to_le_bytes());
    }
    world.at("tracepoint_func", "func", probes)
}

/// The trampoline and the two places.
fn places() -> [(u64, u8); 3] {
    [(TEXT + 0x2600, 0xe9), (TEXT + 0x700, CALL), (TEXT + 0x705, 0xe9)]
}

#[test]
fn the_only_probe_of_a_tracepoint_is_taken_out_with_its_calls() {
    let mut world = World::with_stubs();
    let slot = tracepoint(&world, CODE);
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (1, 0), "{plan:?}");
    assert!(plan.removals[0].hook.starts_with("tracepoint probe at "), "{plan:?}");
    // Linux changes probes at the moment.
    world.set(variable("tracepoints_mutex"), 1);
    assert_eq!((world.carry_out(&plan), world.get(slot)), (1, CODE));
    world.set(variable("tracepoints_mutex"), 0);
    assert_eq!((world.carry_out(&plan), world.get(slot)), (0, NOTHING));
    assert_eq!(world.get(world.at("static_call_key", "func", TEXT + 0x2500)), HANDLER);
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.memory);
    for (at, operation) in places() {
        let [found, distance @ ..] = kernel.array::<5>(at).unwrap();
        assert_eq!(found, operation);
        let leads_to = (at + 5).wrapping_add_signed(i32::from_le_bytes(distance).into());
        assert_eq!(leads_to, HANDLER, "{at:#x}");
    }
    assert_eq!(world.plan(CODE).removals, []);
    assert_eq!(world.look(2 * PASSES), [""; 0], "the check text judges probes");
}

#[test]
fn a_call_without_a_probe_in_the_list_is_taken_out() {
    let mut world = World::with_stubs();
    let slot = tracepoint(&world, CODE);
    world.set(slot, NOTHING);
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (1, 0), "{plan:?}");
    assert_eq!(world.carry_out(&plan), 0);
    assert_eq!(world.get(world.at("static_call_key", "func", TEXT + 0x2500)), HANDLER);
    assert_eq!(world.plan(CODE).removals, []);
}

#[test]
fn a_probe_behind_many_others_is_taken_out() {
    let mut world = World::with_stubs();
    let first = tracepoint(&world, HANDLER);
    let bytes = world.offsets["tracepoint_func.func"] + 24;
    (0..500).for_each(|number| world.set(first + bytes * number, TRACE));
    world.set(first + bytes * 400, CODE);
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (1, 0), "{plan:?}");
}

#[test]
fn one_of_several_probes_of_a_tracepoint_is_taken_out_alone() {
    let mut world = World::with_stubs();
    let slot = tracepoint(&world, HANDLER);
    let plan = world.plan(CODE);
    assert_eq!(plan.removals[0].repair.words.len(), 1);
    assert_eq!((world.carry_out(&plan), world.get(slot)), (0, NOTHING));
}

#[test]
fn a_static_call_of_another_form_is_left() {
    let other_places = |world: &World| world.memory.put(fake::physical(places()[1].0), &[0x90]);
    let other_record = |world: &World| {
        world.object("static_call_key", TEXT + 0x2500, &[("func", HANDLER + 8)]);
    };
    let modules = |world: &World| {
        world.object("static_call_key", TEXT + 0x2500, &[("type", OBJECT + 0x1000)]);
        let members = [("mod", MODULE), ("sites", SITES), ("next", OBJECT + 0x1000)];
        world.object("static_call_mod", OBJECT + 0x1000, &members);
    };
    let endless = |world: &World| {
        world.object("static_call_key", TEXT + 0x2500, &[("type", OBJECT + 0x1000)]);
        world.object("static_call_mod", OBJECT + 0x1000, &[("next", OBJECT + 0x1000)]);
    };
    let cases: [&dyn Fn(&World); 4] = [&other_places, &other_record, &modules, &endless];
    for (number, case) in cases.into_iter().enumerate() {
        let mut world = World::with_stubs();
        tracepoint(&world, CODE);
        case(&world);
        let plan = world.plan(CODE);
        assert_eq!((plan.removals.len(), plan.left.len()), (0, 1), "case {number}: {plan:?}");
    }
}

#[test]
fn what_has_no_safe_step_is_left_with_the_reason() {
    let mut world = World::with_stubs();
    world.link(variable("formats"), world.at("linux_binfmt", "lh", OBJECT));
    let slot = world.at("linux_binfmt", "load_binary", OBJECT);
    world.set(slot, CODE);
    let plan = world.plan(CODE);
    assert_eq!(plan.removals, []);
    assert_eq!(plan.left[0].hook, format!("binary format at {slot:#x}: {OBJECT:#x}"));
    assert_eq!(plan.left[0].why, "no safe step is known");
}

#[test]
fn a_function_that_does_something_is_no_stub() {
    for (at, byte) in [(0, 0x0f), (4, 0x90), (9, 0x33), (11, 0x50)] {
        let mut world = World::with_stubs();
        world.memory.put(fake::physical(NOTHING + at), &[byte]);
        let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
        world.set(first, OBJECT);
        world.object("notifier_block", OBJECT, &[("notifier_call", CODE)]);
        let plan = world.plan(CODE);
        assert_eq!((plan.removals.len(), plan.left.len()), (0, 1), "{at}");
        assert_eq!(plan.left[0].why, "this kernel lacks the function to lead it to");
    }
}

#[test]
fn a_function_that_somebody_comes_into_is_no_stub() {
    for (called, is_stub) in [(TRACE, true), (CODE, false), (NOBODY, false)] {
        let mut world = notified(CODE);
        let distance = called.wrapping_sub(NOTHING + 9) as u32;
        let code = [&[CALL][..], &distance.to_le_bytes()].concat();
        world.memory.put(fake::physical(NOTHING + 4), &code);
        assert_eq!(world.plan(CODE).left.is_empty(), is_stub, "{called:#x}");
    }
}

#[test]
fn code_of_nobody_is_disarmed_and_what_is_elsewhere_is_not() {
    let mut world = World::with_stubs();
    let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(first, OBJECT);
    // The direct map is mapped here; its page is the owner.
    let nobody = DIRECT + 0x3_0000;
    world.object(
        "notifier_block",
        OBJECT,
        &[("notifier_call", nobody + 8), ("next", OBJECT + 0x100)],
    );
    world.object("notifier_block", OBJECT + 0x100, &[("notifier_call", nobody + 0x1000)]);
    world.look(PASSES);
    let start = |address| world.culprit(address).map(|culprit| culprit.start);
    assert_eq!(start(nobody + 8), Some(nobody));
    assert_eq!(start(CODE + 8), Some(CODE), "a listed module");
    assert_eq!(start(HANDLER), None, "Linux's own");
    let plan = world.plan(nobody);
    assert_eq!(plan.owner, "code at 0xffff888000030000 to 0xffff888000031000 in no listed module");
    assert_eq!(plan.removals.len(), 1, "{plan:?}");
    assert_eq!(world.carry_out(&plan), 0);
    assert_eq!(
        world.get(world.at("notifier_block", "notifier_call", OBJECT + 0x100)),
        nobody + 0x1000
    );
}

#[test]
fn the_owner_is_gone_when_the_plan_is_made() {
    let mut world = World::with_stubs();
    let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(first, OBJECT);
    world.object("notifier_block", OBJECT, &[("notifier_call", CODE)]);
    world.set(MODULES, MODULES);
    // Nothing is mapped where it was.
    let culprit = Culprit { start: CODE, address: CODE, ..Culprit::default() };
    assert_eq!(world.plan(CODE), Plan { culprit, ..Plan::default() });
}

/// A world with a notifier that leads to `address`.
fn notified(address: u64) -> World {
    let mut world = World::with_stubs();
    let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(first, OBJECT);
    world.object("notifier_block", OBJECT, &[("notifier_call", address)]);
    world.look(1);
    world
}

#[test]
fn a_module_that_comes_to_the_place_of_a_blamed_one_is_another() {
    let mut world = notified(CODE + 8);
    let blamed = world.culprit(CODE + 8).unwrap();
    world.set(MODULE + 16, u64::from_le_bytes(*b"good\0\0\0\0"));
    assert_eq!(world.plan_for(blamed), Plan { culprit: blamed, ..Plan::default() });
    world.set(MODULE + 16, u64::from_le_bytes(*b"evil\0\0\0\0"));
    assert_eq!(world.plan_for(blamed).removals.len(), 1);
    // The same code with another name, and without a name.
    let nobody = DIRECT + 0x3_0000;
    let mut world = notified(nobody);
    world.set(nobody, 7);
    world.set(MODULE + 128, nobody);
    world.look(1);
    let blamed = world.culprit(nobody).unwrap();
    world.set(MODULE + 16, u64::from_le_bytes(*b"good\0\0\0\0"));
    assert_eq!(world.plan_for(blamed).removals.len(), 1);
    world.set(nobody, 8);
    assert_eq!(world.plan_for(blamed).removals, []);
    world.set(MODULES, MODULES);
    assert_eq!(world.plan_for(blamed).removals.len(), 1);
}

#[test]
fn code_of_nobody_is_known_by_the_blamed_page_if_its_first_one_is_gone() {
    let nobody = DIRECT + 0x3_0000;
    let mut world = notified(nobody + 8);
    let blamed = world.culprit(nobody + 8).unwrap();
    for (start, address) in [(NOBODY, nobody + 8), (nobody, NOBODY)] {
        let plan = world.plan_for(Culprit { start, address, ..blamed });
        assert_eq!(plan.removals.len(), 1, "{plan:?}");
    }
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let mut world = World::with_stubs();
    let ask = |world: &mut World| Check::<FakeMemory>::disarm(&mut world.check, Culprit::default());
    for _ in 0..MAX_PLANS {
        assert!(ask(&mut world));
    }
    assert!(!ask(&mut world));
    world.next_plan();
    assert!(ask(&mut world));
}

#[test]
fn more_hooks_than_a_plan_has_are_counted() {
    let mut world = World::with_stubs();
    world.link(variable("net_namespace_list"), world.at("net", "list", OBJECT));
    let entries = OBJECT + 0x1000;
    world.set(world.at("net", "nf.hooks_ipv4", OBJECT), entries);
    world.object("nf_hook_entries", entries, &[("num_hook_entries", 600)]);
    let first = world.at("nf_hook_entries", "hooks", entries);
    // The second one is where the number is, too.
    (0..600).for_each(|number| world.set(first + 24 * number, CODE + 600));
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.omitted), (MAX_HOOKS, 600 - MAX_HOOKS as u64));
}

#[test]
fn hooks_that_stay_leave_room_for_others() {
    let mut world = World::with_stubs();
    let (list, first) = (world.offsets["linux_binfmt.lh"], OBJECT + 0x1_0000);
    let format = |number: u64| first + 0x80 * number;
    world.set(variable("formats"), format(0) + list);
    for number in 0..2 * MAX_HOOKS as u64 {
        world.object("linux_binfmt", format(number), &[("load_binary", CODE)]);
        world.set(format(number) + list, format(number + 1) + list);
    }
    world.set(format(2 * MAX_HOOKS as u64) + list, variable("formats"));
    let chain = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(chain, world.object("notifier_block", OBJECT, &[("notifier_call", CODE)]));
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (1, MAX_HOOKS - 1));
    assert_eq!(plan.omitted, MAX_HOOKS as u64 + 1);
}

#[test]
fn the_cokernels_own_module_is_left() {
    let mut world = notified(CODE + 8);
    assert!(world.culprit(CODE + 8).is_some());
    // One that takes the name later is another.
    world.set(MODULE + 16, u64::from_le_bytes(*b"kyozon\0\0"));
    world.look(1);
    assert!(world.culprit(CODE + 8).is_some());
    let mut world = World::with_stubs();
    world.set(MODULE + 16, u64::from_le_bytes(*b"kyozon\0\0"));
    world.look(1);
    assert_eq!(world.culprit(CODE + 8), None);
    // It is taken out of the list, or another module says that it has that code.
    world.set(MODULES, MODULES);
    world.look(1);
    assert_eq!(world.culprit(CODE + 8), None);
    let first = world.at("raw_notifier_head", "head", variable("netdev_chain"));
    world.set(first, world.object("notifier_block", OBJECT, &[("notifier_call", CODE + 8)]));
    let own = Culprit { start: CODE, address: CODE + 8, ..Culprit::default() };
    world.set(MODULES, MODULE);
    assert_eq!(world.plan_for(Culprit { name: 1, ..own }).removals, []);
}

#[test]
fn operations_stay_if_files_that_are_open_may_have_something_else() {
    let (root, nobody) = (variable("proc_root"), DIRECT + 0x3_0000);
    let functions = [("proc_open", HANDLER), ("proc_release", HANDLER)];
    for (member, mode, is_safe) in [
        ("", 0o100_444, true),
        ("proc_open", 0o100_444, false),
        ("proc_release", 0o100_444, false),
        ("proc_open", 0o040_555, true),
    ] {
        let mut world = World::with_stubs();
        world.object("proc_dir_entry", root, &[("proc_ops", TABLE), ("mode", mode)]);
        world.object("proc_ops", TABLE, &functions);
        world.look(1);
        world.object("proc_ops", nobody, &functions);
        if !member.is_empty() {
            world.object("proc_ops", nobody, &[(member, nobody)]);
        }
        world.object("proc_dir_entry", root, &[("proc_ops", nobody)]);
        let plan = world.plan(nobody);
        let expected = if is_safe { (1, 0) } else { (0, 1) };
        assert_eq!((plan.removals.len(), plan.left.len()), expected, "{member}: {plan:?}");
    }
}

#[test]
fn memory_of_any_content_gives_plans_of_the_owner_alone() {
    let mut numbers = fake::RandomNumbers(7);
    for _ in 0..fake::rounds(100) {
        let mut world = World::with_stubs();
        for _ in 0..400 {
            let place = match numbers.below(3) {
                0 => TEXT + 0x1_0000 + 8 * numbers.below(0x200 * VARIABLES.len() as u64),
                1 => TRACEPOINTS + 8 * numbers.below(0x100),
                _ => DIRECT + 0x1_0000 + 8 * numbers.below(0x800),
            };
            let value = match numbers.below(5) {
                0 => TEXT + 0x1_0000 + 8 * numbers.below(0x200 * VARIABLES.len() as u64),
                1 => numbers.next(),
                2 => CODE + numbers.below(0x2000),
                _ => DIRECT + 0x1_0000 + 8 * numbers.below(0x800),
            };
            world.set(place, value);
        }
        let plan = world.plan(CODE);
        for removal in &plan.removals {
            let first = removal.repair.words[0];
            let own = CODE..CODE + 0x2000;
            assert!(removal.repair.words.iter().any(|it| own.contains(&it.expected)), "{first:?}");
        }
    }
}
