//! Functions that Linux's own users of ftrace call.

use super::*;
use std::vec;

/// The lists of a user's filter, which has `getdents64` alone, and of the table of direct calls.
const FILTER: u64 = OBJECT + 0x1000;
const TABLE_OF_DIRECTS: u64 = OBJECT + 0x2000;

fn table(world: &World, at: u64, function: u64) -> u64 {
    let lists = at + 0x800;
    world.object("ftrace_hash", at, &[("size_bits", 2), ("count", 1), ("buckets", lists)]);
    let entry = world.object("ftrace_func_entry", at + 0x400, &[("ip", function)]);
    let list = lists + 8 * crate::walk::hash(function, 2);
    world.set(list, world.at("ftrace_func_entry", "hlist", entry));
    entry
}

/// A user of ftrace at `user`, for which Linux calls `function` at the beginning of `getdents64`.
fn user(world: &World, user: u64, function: u64) {
    let hashes = OBJECT + 0x3000;
    world.object("ftrace_ops", user, &[("func", function), ("func_hash", hashes)]);
    world.object("ftrace_ops_hash", hashes, &[("filter_hash", FILTER)]);
    world.set(variable("ftrace_ops_list"), user);
    table(world, FILTER, GETDENTS + 4);
}

fn sensitive(by: &str) -> String {
    format!(
        "sensitive function hooked, __x64_sys_getdents64+0x4: , by {by}, which can change listings \
         of directories, module evil"
    )
}

fn hidden(what: &str, object: &str) -> String {
    let owner = "0xffffffffc1234560 in no listed module";
    format!("{what}, {object}: , 0xffffffffc1234560, {owner}")
}

#[test]
fn a_live_patch_is_who_replaces_the_function() {
    let mut world = World::new();
    let patched = OBJECT + 0x4000;
    let head = world.at("klp_ops", "func_stack", patched);
    let [new, old] = [OBJECT + 0x5000, OBJECT + 0x6000];
    let link = |at| world.at("klp_func", "stack_node", at);
    for (at, next) in [(head, link(new)), (link(new), link(old)), (link(old), head)] {
        world.set(at, next);
    }
    world.object("klp_func", new, &[("new_func", TEXT + 0x600)]);
    world.object("klp_func", old, &[("new_func", CODE)]);
    user(&world, world.at("klp_ops", "fops", patched), PATCHES);
    // While processes change over, the earlier one runs, too.
    assert_eq!(world.look(PASSES), [sensitive("live patch")]);
    world.object("klp_func", old, &[("new_func", NOBODY)]);
    assert_eq!(world.look(PASSES), [hidden("hidden live patch", "live patch")]);
    world.object("klp_func", old, &[("new_func", 0)]);
    assert_eq!(world.look(PASSES), [""; 0]);
    // Another one of Linux's users has no such list.
    world.object("klp_func", new, &[("new_func", NOBODY)]);
    user(&world, world.at("klp_ops", "fops", patched), HANDLER);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
}

/// Whoever has a static call lead to himself owns what leads to its trampoline, though that is the kernel's.
#[test]
fn a_pointer_to_a_static_calls_trampoline_leads_where_that_does() {
    for (target, findings) in [(HANDLER, 0), (CODE, 1)] {
        let mut world = World::new();
        let distance = target.wrapping_sub(STATIC_CALL + 5) as u32;
        let jump = [&[JUMP][..], &distance.to_le_bytes()].concat();
        world.memory.put(fake::physical(STATIC_CALL), &jump);
        user(&world, OBJECT, STATIC_CALL);
        let found = world.look(2 * PASSES);
        assert_eq!(found, vec![sensitive("ftrace"); findings]);
    }
}

/// Linux keeps what it puts a function of its own before.
#[test]
fn a_user_has_the_function_that_linux_saved() {
    let mut world = World::new();
    user(&world, OBJECT, HANDLER);
    world.object("ftrace_ops", OBJECT, &[("saved_func", CODE)]);
    assert_eq!(world.look(2 * PASSES), [sensitive("ftrace")]);
    // Of a live patch.
    let mut world = World::new();
    let patched = OBJECT + 0x4000;
    let head = world.at("klp_ops", "func_stack", patched);
    world.link(head, world.at("klp_func", "stack_node", OBJECT + 0x5000));
    world.object("klp_func", OBJECT + 0x5000, &[("new_func", CODE)]);
    let of_patch = world.at("klp_ops", "fops", patched);
    user(&world, of_patch, HANDLER);
    world.object("ftrace_ops", of_patch, &[("saved_func", PATCHES)]);
    assert_eq!(world.look(2 * PASSES), [sensitive("live patch")]);
}

/// The handler of returns is Linux's own, unless somebody changed it.
#[test]
fn what_catches_returns_has_a_handler() {
    let catches = OBJECT + 0x7000;
    let mut world = World::new();
    user(&world, OBJECT, TEXT + 0x4b0);
    let probe = OBJECT - world.offsets["fprobe.ops"];
    world.object("fprobe", probe, &[("rethook", catches)]);
    world.object("rethook", catches, &[("handler", HANDLER)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    world.object("rethook", catches, &[("handler", CODE)]);
    assert_eq!(world.look(2 * PASSES), [sensitive("ftrace")]);
    let mut world = World::new();
    let probe = OBJECT + 0x4000;
    world.object("kprobe", probe, &[("addr", GETDENTS + 4), ("pre_handler", TEXT + 0x490)]);
    world.set(variable("kprobe_table"), world.at("kprobe", "hlist", probe));
    let start = probe - world.offsets["kretprobe.kp"];
    world.object("kretprobe", start, &[("rh", catches)]);
    world.object("rethook", catches, &[("handler", CODE)]);
    assert_eq!(world.look(2 * PASSES), [sensitive("kprobe of __x64_sys_getdents64+0x4")]);
}

#[test]
fn a_live_patch_is_taken_out_by_the_rest_of_the_function() {
    let mut world = World::with_stubs();
    let patched = OBJECT + 0x4000;
    let head = world.at("klp_ops", "func_stack", patched);
    world.link(head, world.at("klp_func", "stack_node", OBJECT + 0x5000));
    let slot = world.at("klp_func", "new_func", OBJECT + 0x5000);
    world.set(slot, CODE);
    user(&world, world.at("klp_ops", "fops", patched), PATCHES);
    // Without a call of ftrace, what is behind it is not the function's.
    let plan = world.plan(CODE);
    assert_eq!((plan.removals.len(), plan.left.len()), (0, 1), "{plan:?}");
    let distance = (TEXT + 0x700u64).wrapping_sub(GETDENTS + 4 + 5) as u32;
    let call = [&[CALL][..], &distance.to_le_bytes()].concat();
    world.memory.put(fake::physical(GETDENTS + 4), &call);
    let plan = world.plan(CODE);
    assert_eq!(world.carry_out(&plan), 0);
    assert_eq!(world.memory.get(fake::physical(slot)), GETDENTS + 4 + 5);
    assert_eq!(world.plan(CODE).removals, []);
}

#[test]
fn a_direct_call_is_whose_code_it_leads_to() {
    let mut world = World::new();
    let entry = table(&world, TABLE_OF_DIRECTS, GETDENTS + 4);
    world.set(variable("direct_functions"), TABLE_OF_DIRECTS);
    let slot = world.at("ftrace_func_entry", "direct", entry);
    world.set(slot, CODE);
    assert_eq!(world.look(PASSES), [sensitive("direct call")]);
    // The same is said once.
    user(&world, OBJECT, HANDLER);
    world.object("ftrace_ops", OBJECT, &[("direct_call", CODE)]);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    world.set(slot, NOBODY);
    world.object("ftrace_ops", OBJECT, &[("direct_call", NOBODY)]);
    assert_eq!(world.look(PASSES), [hidden("hidden direct call", "direct call")]);
    world.set(slot, HANDLER);
    world.object("ftrace_ops", OBJECT, &[("direct_call", HANDLER)]);
    assert_eq!(world.look(PASSES), [""; 0]);
    // The user's alone is called if there are others.
    world.object("ftrace_ops", OBJECT, &[("direct_call", CODE)]);
    assert_eq!(world.look(PASSES), [sensitive("direct call")]);
}

/// The pointer at `slot` is called for every function.
fn hooks_all(mut world: World, slot: u64) {
    world.set(slot, CODE);
    let lines = world.look(PASSES);
    let expected = "sensitive function hooked, all functions: , by graph tracer, which can change every function, \
                    module evil";
    assert_eq!(lines, [expected]);
    world.set(slot, NOBODY);
    assert_eq!(world.look(PASSES), [hidden("hidden graph tracer", "graph tracer")]);
    world.set(slot, HANDLER);
    assert_eq!(world.look(PASSES), [""; 0]);
}

#[test]
fn a_table_of_direct_calls_without_end_is_left() {
    let mut world = World::new();
    let entry = table(&world, TABLE_OF_DIRECTS, GETDENTS + 4);
    world.set(variable("direct_functions"), TABLE_OF_DIRECTS);
    world.set(world.at("ftrace_func_entry", "direct", entry), CODE);
    let link = world.at("ftrace_func_entry", "hlist", entry);
    world.set(link, link);
    assert_eq!(world.look(PASSES), [sensitive("direct call")]);
    assert!(world.check.coverage.unjudged > 0);
}

#[test]
fn a_graph_tracer_hooks_every_function() {
    for function in ["entryfunc", "retfunc", "saved_func"] {
        let world = World::new();
        world.set(variable("fgraph_array") + 8 * 15, OBJECT);
        let slot = world.at("fgraph_ops", function, OBJECT);
        hooks_all(world, slot);
    }
    for pointer in ["ftrace_graph_entry", "__ftrace_graph_entry", "ftrace_graph_return"] {
        hooks_all(World::without("fgraph_array"), variable(pointer));
    }
}
