//! The rules for each kind of site.

use super::*;

#[test]
fn jump_label_is_a_jump_or_nop() {
    let mut world = World::new();
    world.assert_allowed(JUMP_5, &near(JUMP_5, JMP, TARGET));
    world.assert_allowed(JUMP_2, &[0xeb, (TARGET - JUMP_2 - 2) as u8]);
    world.assert_allowed(JUMP_ON, &near(JUMP_ON, JMP, TARGET));
    assert_eq!(world.assert_forbidden(JUMP_5, &near(JUMP_5, JMP, TARGET + 1)), "0f 1f 44 00 00");
    world.assert_forbidden(JUMP_5, &near(JUMP_5, CALL, TARGET));
    world.assert_forbidden(JUMP_2, &[0xeb, (TARGET - JUMP_2 - 1) as u8]);
    // With this key state, a jump is expected.
    world.set(KEY, 1);
    let to = near(JUMP_5, JMP, TARGET);
    assert_eq!(
        world.assert_forbidden(JUMP_5, &[0x90; 5]),
        std::format!("{:02x} {:02x} 00 00 00", to[0], to[1])
    );
}

#[test]
fn static_call_follows_its_key() {
    let mut world = World::new();
    world.assert_forbidden(STATIC, &near(STATIC, CALL, OTHER));
    world.assert_forbidden(STATIC, &near(STATIC, JMP, VICTIM));
    world.assert_allowed(STATIC, &near(STATIC, CALL, VICTIM - 10));
    for (function, site, tail, trampoline) in [
        (
            OTHER,
            near(STATIC, CALL, OTHER),
            near(STATIC_TAIL, JMP, OTHER),
            near(TRAMPOLINE, JMP, OTHER),
        ),
        (0, nop5(), vec![0xc3, 0xcc, 0xcc, 0xcc, 0xcc], near(TRAMPOLINE, JMP, THUNK)),
        (
            RETURN_0,
            vec![0x2e, 0x2e, 0x2e, 0x31, 0xc0],
            near(STATIC_TAIL, JMP, RETURN_0),
            near(TRAMPOLINE, JMP, RETURN_0),
        ),
    ] {
        world.set(CALL_KEY, function);
        world.set(TAIL_KEY, function);
        world.put(STATIC, &site);
        world.put(STATIC_TAIL, &tail);
        world.put(TRAMPOLINE, &trampoline);
        assert_eq!(world.passes(5), vec![], "{function:#x}");
    }
}

/// Whoever can write to the record must not have the monitor write to the text.
#[test]
fn static_call_is_not_led_where_its_record_leads_now() {
    let mut world = World::new();
    // A probe is called since the load, and the record changes after that.
    world.set(CALL_KEY, OTHER);
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    assert_eq!(world.passes(3), vec![]);
    world.set(CALL_KEY, TARGET);
    let found = world.passes(3);
    assert_eq!((&*found[0].what, found[0].repairs.len()), ("kernel text changed", 0));
    assert!(found[0].held.starts_with("the record of the static call differs"), "{found:?}");
    assert!(found[0].owner.contains(", by its record to "), "{found:?}");
    // As at the load, it can be repaired.
    world.set(CALL_KEY, VICTIM);
    let found = world.passes(3);
    world.repair(&found[0]);
    assert_eq!(world.passes(3), vec![]);
}

#[test]
fn static_call_leads_to_listed_code_only() {
    let mut world = World::new();
    world.set(CALL_KEY, MODULE_TEXT + 4);
    world.put(STATIC, &near(STATIC, CALL, MODULE_TEXT + 4));
    assert_eq!(world.passes(3).len(), 1);
    module(&world);
    assert_eq!(world.passes(3), vec![]);
    world.set(MODULES, MODULES);
    ksym(&world);
    world.set(CALL_KEY, BPF_TEXT + 4);
    world.put(STATIC, &near(STATIC, CALL, BPF_TEXT + 4));
    assert_eq!(world.passes(3), vec![]);
}

/// Lists a module.
fn module(world: &World) {
    world.set(MODULES, MODULE);
    world.set(MODULE, MODULES);
    world.put(MODULE + 16, b"guest\0");
    world.set(MODULE + 128 + 32, MODULE_TEXT);
    world.set(MODULE + 128 + 40, 0x1000);
}

/// Lists a BPF program.
fn ksym(world: &World) {
    world.set(BPF, KSYM + 16);
    world.set(KSYM + 16, BPF);
    world.set(KSYM, BPF_TEXT);
    world.set(KSYM + 8, BPF_TEXT + 0x800);
    world.put(KSYM + 32, b"bpf_prog_1\0");
}

/// `mov $to, %rax; jmp *%rax`.
fn far_jump(to: u64) -> Vec<u8> {
    let mut code = vec![0x48, 0xb8];
    code.extend(u64::to_le_bytes(to));
    code.extend([0xff, 0xe0]);
    code
}

/// A live patch that does not use ftrace: a function begins with a jump into a module that Linux marks.
#[test]
fn live_patch_is_reported_and_not_undone() {
    let mut world = World::new();
    module(&world);
    let jump = far_jump(MODULE_TEXT + 8);
    assert!(!world.verdict(VICTIM, &jump)[0].repairs.is_empty(), "an ordinary module");
    world.set(MODULE + 80, 1 << 15);
    let found = world.verdict(VICTIM, &jump);
    assert_eq!(found[0].held, "it leads to a live patch");
    assert_eq!((found[0].owner.as_str(), found[0].repairs.len()), ("module guest", 0));
    assert_eq!(world.verdict(VICTIM, &far_jump(UNLISTED_CODE))[0].held, "", "not its own code");
}

#[test]
fn owner_is_symbol_module_program_or_nobody() {
    let mut world = World::new();
    module(&world);
    ksym(&world);
    for (to, owner) in [
        (OTHER + 1, "other+0x1"),
        (MODULE_TEXT, "module guest"),
        (BPF_TEXT, "bpf bpf_prog_1"),
        (UNLISTED_CODE, "0xffff88800000f000 in no listed module"),
    ] {
        assert_eq!(world.verdict(VICTIM, &far_jump(to))[0].owner, owner);
    }
    assert_eq!(world.verdict(VICTIM, &[0x31, 0xc0, 0xc3])[0].owner, "nobody");
}

#[test]
fn function_entry_calls_ftrace_users_only() {
    let mut world = World::new();
    world.assert_allowed(ENTRY, &near(ENTRY, CALL, CALLER));
    world.assert_allowed(ENTRY, &near(ENTRY, CALL, REGS_CALLER));
    world.assert_forbidden(ENTRY, &near(ENTRY, JMP, CALLER));
    assert_eq!(world.assert_forbidden(ENTRY, &near(ENTRY, CALL, OTHER)), "0f 1f 44 00 00");
    // A registered user with a trampoline of its own; its function must not be called directly.
    world.assert_forbidden(ENTRY, &near(ENTRY, CALL, UNLISTED_CODE));
    world.set(OPS, USER);
    world.set(USER, VICTIM);
    world.set(USER + 8, OPS_END);
    world.set(USER + 16, OTHER);
    world.assert_allowed(ENTRY, &near(ENTRY, CALL, OTHER));
    world.assert_forbidden(ENTRY, &near(ENTRY, CALL, VICTIM));
    world.assert_allowed(FTRACE_CALL, &near(FTRACE_CALL, CALL, VICTIM));
    world.assert_forbidden(FTRACE_CALL, &near(FTRACE_CALL, CALL, OTHER));
    // Being removed: its trampoline is not freed yet.
    world.set(OPS, OPS_END);
    world.set(OPS_TRAMPOLINES, USER + 24);
    world.set(USER + 24, OPS_TRAMPOLINES);
    world.assert_allowed(ENTRY, &near(ENTRY, CALL, OTHER));
    // The record is enabled: a call is expected.
    world.set(RECORDS + 8, 1 << 31 | 1);
    let call = near(ENTRY, CALL, CALLER);
    let hex: Vec<String> = call.iter().map(|byte| std::format!("{byte:02x}")).collect();
    assert_eq!(
        world.assert_forbidden(ENTRY, &near(ENTRY, JMP, UNLISTED_CODE + 0x1234_5678)),
        hex.join(" ")
    );
}

#[test]
fn direct_call_belongs_to_its_function() {
    let mut world = World::new();
    let bucket = ENTRY.wrapping_mul(0x61c8_8646_80b5_83eb) >> 62;
    world.set(BUCKETS + 8 * bucket, DIRECT_ENTRY);
    world.set(DIRECT_ENTRY + 16, ENTRY);
    world.set(DIRECT_ENTRY + 24, OTHER + 0x40);
    world.assert_allowed(ENTRY, &near(ENTRY, CALL, OTHER + 0x40));
    world.assert_forbidden(ENTRY, &near(ENTRY, CALL, OTHER + 0x48));
    world.assert_forbidden(ENTRY_EDGE, &near(ENTRY_EDGE, CALL, OTHER + 0x40));
}

#[test]
fn entry_across_two_pages_is_one_change() {
    let mut world = World::new();
    world.assert_allowed(ENTRY_EDGE, &near(ENTRY_EDGE, CALL, CALLER));
    world.put(ENTRY_EDGE, &[0x90; 5]);
    let found = world.passes(3);
    assert_eq!(found.len(), 1, "one change: {found:?}");
    assert_eq!(found[0].repairs[0].words.len(), 2);
    world.repair(&found[0]);
    assert_eq!(world.passes(3), vec![]);
}

#[test]
fn repair_keeps_a_site_in_the_same_word() {
    let mut world = World::new();
    // The label is bytes 3..8 of its word.
    world.put(JUMP_5, &near(JUMP_5, JMP, TARGET));
    let whole = world.get(JUMP_5 & !7);
    world.put(JUMP_5 - 2, &[0x90, 0x90]);
    let found = world.passes(3);
    assert_eq!(found.len(), 1);
    world.repair(&found[0]);
    assert_eq!(world.get(JUMP_5 & !7), whole);
}

#[test]
fn site_tampered_before_load_is_found() {
    let mut world = World::before_first_pass();
    world.put(ENTRY, &near(ENTRY, CALL, UNLISTED_CODE));
    world.put(JUMP_2, &[0xeb, (TARGET - JUMP_2 - 2) as u8]);
    let found = world.passes(4);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].address, found[0].expected.as_str()), (ENTRY, "0f 1f 44 00 00"));
}

/// The copy has a jump into a module that leaves and takes its jump back.
#[test]
fn repair_does_not_lead_to_unlisted_code() {
    for (start, state) in [(0, 0), (MODULE_SPACE, 2)] {
        let mut world = World::before_first_pass();
        let original = world.get(VICTIM + 8);
        world.put(VICTIM + 9, &near(VICTIM + 9, JMP, MODULE_SPACE + 16));
        assert_eq!(world.passes(3), vec![]);
        world.set(VICTIM + 8, original);
        world.list_module(start, 0x1000, state);
        let found = world.passes(3);
        assert_eq!((found.len(), found[0].repairs.len()), (1, 0), "{found:?}");
        assert_eq!(found[0].held, "the copy leads to code of no listed owner");
        world.list_module(MODULE_SPACE, 0x1000, 0);
        let found = world.passes(10);
        assert!(found.iter().any(|finding| !finding.repairs.is_empty()), "{found:?}");
    }
}

#[test]
fn pointer_is_not_repaired_to_unlisted_code() {
    let mut world = World::before_first_pass();
    world.set(POINTER, MODULE_SPACE + 16);
    assert_eq!(world.passes(3), vec![]);
    world.set(POINTER, VICTIM);
    let found = world.passes(3);
    assert_eq!((found.len(), found[0].repairs.len()), (1, 0), "{found:?}");
}

#[test]
fn changed_code_in_no_listed_module_is_named() {
    let mut world = World::new();
    let found = world.verdict(VICTIM, &near(VICTIM, JMP, MODULE_SPACE));
    assert_eq!(found[0].owner, std::format!("{MODULE_SPACE:#x} in no listed module"));
    let found = world.verdict(POINTER, &MODULE_SPACE.to_le_bytes());
    assert_eq!(found[0].owner, std::format!("{MODULE_SPACE:#x} in no listed module"));
}

/// The restored site calls the function that calls all probes.
#[test]
fn static_call_is_held_while_its_probe_is_registered() {
    let mut world = World::before_first_pass();
    world.set(CALL_KEY, TRACE_ITERATOR);
    world.put(STATIC, &near(STATIC, CALL, TRACE_ITERATOR));
    assert_eq!(world.passes(3), vec![]);
    world.set(CALL_KEY, MODULE_SPACE);
    world.put(STATIC, &near(STATIC, CALL, MODULE_SPACE));
    world.set(TRACEPOINT + 8, TRACE_PROBES);
    world.set(TRACE_PROBES, VICTIM);
    world.set(TRACE_PROBES + 24, MODULE_SPACE);
    let found: Vec<Finding> = world.passes(3).into_iter().take(2).collect();
    let what: Vec<_> =
        found.iter().map(|f| (f.what.as_str(), f.address, f.repairs.len())).collect();
    assert_eq!(
        what,
        [("hidden tracepoint probe", TRACEPOINT, 0), ("kernel text changed", STATIC, 0)]
    );
    assert_eq!(found[0].symbol, "__tracepoint_event");
    assert_eq!(found[0].owner, std::format!("{MODULE_SPACE:#x} in no listed module"));
    assert_eq!(found[1].held, "the probe is still registered");
    world.set(TRACE_PROBES + 24, 0);
    let found = world.passes(10);
    world.repair(found.last().unwrap());
    assert_eq!(world.byte(STATIC + 1), near(STATIC, CALL, TRACE_ITERATOR)[1]);
}

#[test]
fn ftrace_handler_of_no_listed_module_is_reported() {
    let mut world = World::new();
    world.set(OPS, USER);
    world.set(USER, MODULE_SPACE + 8);
    world.set(USER + 8, OPS_END);
    world.list_module(MODULE_SPACE, 0x1000, 0);
    assert_eq!(world.passes(5), vec![], "a listed module's");
    world.set(MODULES, MODULES);
    let found = world.passes(2);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].what.as_str(), found[0].address), ("hidden ftrace handler", USER));
    assert_eq!(found[0].owner, std::format!("{:#x} in no listed module", MODULE_SPACE + 8));
    assert_eq!(found[0].repairs, vec![]);
    let stands =
        |world: &World| Check::<FakeMemory>::stands(&world.check, "hidden ftrace handler", USER);
    world.passes(20);
    assert!(stands(&world), "also between two reports");
    world.set(OPS, OPS_END);
    world.passes(1);
    assert!(!stands(&world));
}

/// The second call of a page is compared with the first one that was allowed.
#[test]
fn each_call_of_a_user_needs_its_own_record() {
    const SECOND: u64 = ENTRY + 16;
    let mut world = World::before_first_pass();
    world.set(FTRACE_PAGE + 16, 3);
    world.set(RECORDS + 32, SECOND);
    world.put(SECOND, &nop5());
    world.pass();
    let call = |at: u64| near(at, CALL, CALLER);
    world.put(ENTRY, &call(ENTRY));
    world.assert_allowed(SECOND, &call(SECOND));
    world.assert_forbidden(SECOND, &call(SECOND + 1));
    world.set(RECORDS + 32, SECOND + 1);
    world.assert_forbidden(SECOND, &call(SECOND));
}

#[test]
fn look_that_takes_many_slices_finds_the_change() {
    const LATE: u64 = ENTRY + 0xe00;
    let mut world = World::new();
    world.put(ENTRY, &near(ENTRY, CALL, CALLER));
    let mut found = Vec::new();
    let passes = |world: &mut World, found: &mut Vec<Finding>| {
        for _ in 0..4 {
            while !world.slice(1, found) {}
        }
    };
    passes(&mut world, &mut found);
    assert_eq!(found, vec![]);
    world.put(LATE, &[0x90]);
    passes(&mut world, &mut found);
    assert_eq!(found[0].address, LATE);
}
