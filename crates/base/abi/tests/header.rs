//! `include/kyozon/abi.h` matches this crate, and a C compiler computes the same sizes, offsets and shifts.

mod common;

use kyozon_abi::{device::*, events::*, layer::*, library::*, typed::*, unikernel::*, vmm::*};
use std::{fs, mem, path::Path, process::Command};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generate() -> String {
    let sources = [
        "layer.rs",
        "layer/image.rs",
        "layer/entry.rs",
        "layer/trip.rs",
        "layer/cokernel.rs",
        "layer/service.rs",
        "device.rs",
        "events.rs",
        "unikernel.rs",
        "unikernel/image.rs",
        "unikernel/address_space.rs",
        "unikernel/boot.rs",
        "unikernel/call.rs",
        "unikernel/region.rs",
        "unikernel/device.rs",
        "unikernel/port.rs",
        "vmm.rs",
        "library.rs",
        "typed.rs",
    ];
    let text = common::generate(root(), &sources);
    // cbindgen prefixes all names in lower case; the kernel's style demands upper case for macros.
    let constants: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("#define kyozon_"))
        .filter_map(|l| l.split(' ').next())
        .collect();
    let upper = |text: String, name: &&str| {
        text.replace(&format!("kyozon_{name}"), &format!("KYOZON_{name}"))
    };
    constants.iter().fold(text.clone(), upper)
}

#[test]
fn header_is_fresh() {
    common::assert_fresh(&root().join("include/kyozon/abi.h"), "kyozon-abi", &generate());
}

/// Appends lines of C that assert the size and the offsets that Rust computes.
macro_rules! layout {
    ($out:ident, $rust:ident, $c:literal: $($field:ident),+ $(,)?) => {
        $out.push_str(&format!("_Static_assert(sizeof(struct {0}) == {1}, \"{0}\");\n", $c, mem::size_of::<$rust>()));
        $($out.push_str(&format!(
            "_Static_assert(offsetof(struct {0}, {1}) == {2}, \"{0}.{1}\");\n",
            $c, stringify!($field), mem::offset_of!($rust, $field)
        ));)+
    };
}

/// A line of C for each constant that the header computes by a shift, which in C may be one of an int.
fn shifted_constants() -> String {
    let header = fs::read_to_string(root().join("include/kyozon/abi.h")).expect("the header");
    let assertion = |line: &str| {
        let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
        let (number, shift) = value.strip_prefix('(')?.strip_suffix(')')?.split_once(" << ")?;
        let value = number.parse::<u64>().ok()? << shift.parse::<u32>().ok()?;
        Some(format!("_Static_assert({name} == {value}, \"{name}\");\n"))
    };
    header.lines().filter_map(assertion).collect()
}

#[test]
fn c_compiler_agrees_on_every_layout_and_shift() {
    let mut c = String::from("#include <stddef.h>\n#include \"kyozon/abi.h\"\n");
    layout!(c, ImageHeader, "kyozon_image_header": magic, version, kind, base, text_bytes, rodata_bytes, data_bytes,
        memory_bytes, entry);
    layout!(c, Range, "kyozon_range": base, bytes);
    layout!(c, LayerEntry, "kyozon_layer_entry": version, mode, tsc_khz, tick_hz, budget_us, cpu,
        paging_levels, cokernel,
        memory, memory_bytes, page_table, tables, tss, idt, events, events_bytes, serial_port, ram_count, ram,
        trip, poke_entry, poke, guard, guard_comparator, guard_counter, guard_per_tsc, cokernel_text_bytes,
        cokernel_bytes, piece_count, pieces, task_count, tasks, parameter, acknowledge, data, mailbox, reserved);
    layout!(c, Fault, "kyozon_fault": reason, reserved, cr2, cr3, frame);
    layout!(c, UserState, "kyozon_user_state": fs_base, gs_base, ds, es, fs, gs, reserved, ldt, switched);
    layout!(c, Trip, "kyozon_trip": event, deadline_tsc, guard_tsc, next_tsc, period_tsc, result, ticks_inside, stale,
        parked, foreign, in_transit, inside, machine_check, nmi_entry, machine_check_entry, fault, user, slack_tsc,
        linux_gdtr, linux_idtr, look_until_tsc, look, reserved, shown);
    layout!(c, BootBlock, "kyozon_boot_block": version, mode, tsc_khz, tick_hz, budget_us, memory, memory_bytes, idle,
        linux_window, linux_repair, report, publish, handlers, enter_user,
        page_table, tables, paging_levels, piece_count, pieces, tasks, task_count, parameter, data, work,
        linux_registers, reset, watch, writes, other_registers, vectors);
    layout!(c, Report, "kyozon_report": kind, code, text, bytes);
    layout!(c, Handlers, "kyozon_handlers": tick, user, user_stack);
    layout!(c, TickEvent, "kyozon_tick_event": number, missed, scheduled_tsc, entered_tsc);
    layout!(c, Frame, "kyozon_frame": r15, rdi, vector, error, rip, cs, rflags, rsp, ss);
    layout!(c, Window, "kyozon_window": count, ram);
    layout!(c, LinuxRegisters, "kyozon_linux_registers": cpu, cr0, cr4, idt_base, idt_limit, gdt_base, gdt_limit, efer,
        star, lstar, cstar, sfmask, sysenter_cs, sysenter_esp, sysenter_eip, breakpoints, dr7);
    layout!(c, Write, "kyozon_write": kind, cpu, address, before, after, rip, cr3);
    layout!(c, Writes, "kyozon_writes": count, lost, writes);
    layout!(c, RepairWord, "kyozon_repair_word": address, expected, value);
    layout!(c, RepairRequest, "kyozon_repair_request": count, words);
    layout!(c, Image, "kyozon_image": address, bytes);
    layout!(c, Load, "kyozon_load": version, mode, tick_hz, budget_us, cpu, tick_source, flags, serial_port,
        memory_bytes,
        image_count, images, message, parameter, data, hypervisor, key);
    layout!(c, Unload, "kyozon_unload": version, reserved, key);
    layout!(c, Status, "kyozon_status": version, state, mode, tick_hz, budget_us, cpu, tick_source, locked,
        ticks, missed,
        overruns, longest_ns, p99_ns, reserve_bytes, events_bytes, differences, message, exits, wall_findings,
        nested_bytes, iommu, reserved2);
    layout!(c, CheckStatus, "kyozon_check_status": name, sequence, passes, findings, repairs, retries,
        pass_tsc, total_tsc,
        last_tsc, items, state, wall_tsc, item_bytes, open, unlisted, unjudged, restarts, dropped, learned,
        reserved);
    layout!(c, MonitorStatus, "kyozon_monitor_status": state, beat_tsc, patience_tsc, restarts, sequence, full_slices,
        slices, slice_tsc, reserved, reason);
    layout!(c, EventRing, "kyozon_event_ring": version, records, next, tsc_khz, loaded_tsc, reserved, checks, monitor);
    layout!(c, EventRecord, "kyozon_event_record": sequence, tsc, tick, kind, code, text_bytes, continues, text);
    layout!(c, HostTimer, "kyozon_host_timer": registers, config, guard, message, ioapic, pin, period_fs);
    layout!(c, HostNames, "kyozon_host_names": current_task, pid, comm);
    layout!(c, HostIommu, "kyozon_host_iommu": registers, devices, devices_bytes, buffers);
    layout!(c, HostEntry, "kyozon_host_entry": version, operation, cpu, result, cpu_count, cokernel_cpu, paging_levels,
        largest_leaf, physical_bits, tick_hz, budget_us, serial_port, tsc_khz, guest_page_table, guest_entry,
        guest_argument, guest_trip, guest_stack, guest_exit, guest_gdt, guest_idt, guest_tss, trip, mailbox, status,
        events, events_bytes, permissions, local_apic, key, timer, names, iommu, ram_count, guest_count,
        host_count, read_only_count,
        pool_count, check, ram, guest, host, read_only, pool, apic_ids);
    layout!(c, HostStatus, "kyozon_host_status": version, state, ticks, missed, overruns, longest_tsc, due_tsc,
        nested_bytes, findings, differences, doubtful_nmis, exits, histogram, fault);
    layout!(c, Mailbox, "kyozon_mailbox": kind, code, bytes, text, status, registers, writes);
    layout!(c, Area, "kyozon_area": base, bytes);
    layout!(c, GuestBoot, "kyozon_guest_boot": magic, version, backend, features, peer, peers, hypercall,
        doorbell, call, thread,
        image, stack, tls, heap, tsc_khz, tsc_offset, clock_tsc, clock_ns, clock_scale, arguments, argument_count,
        region_count, regions);
    layout!(c, CallBlock, "kyozon_call_block": number, arguments, result);
    layout!(c, SharedRegion, "kyozon_shared_region": name, address, bytes, rights, generation, number);
    layout!(c, RegionPeer, "kyozon_region_peer": state, generation);
    layout!(c, RegionHeader, "kyozon_region_header": magic, version, generation, name, address, bytes, peers, reserved);
    layout!(c, DeviceInfo, "kyozon_device_info": name, kind, queues, features, doorbell, max_size,
        config_bytes, config);
    layout!(c, LibraryHost, "kyozon_library_host": version, reserved, memory, memory_bytes, command_line, context, now,
        realtime, print, park, unpark, wait, mmio_read, mmio_write, barrier, seed);
    layout!(c, LibraryKernel, "kyozon_library_kernel": version, reserved, start, call, service, interrupt, fixup,
        halted);
    layout!(c, LibraryThread, "kyozon_library_thread": host_stack, task, stack_top, done, submitted, kind, inside,
        number, arguments, result, until, next, previous, busy, reserved);
    layout!(c, TypedCheck, "kyozon_typed_check": version, flags, file, contents, message);
    layout!(c, TypedLoad, "kyozon_typed_load": check, imports, import_count);
    layout!(c, TypedContents, "kyozon_typed_contents": functions, text_bytes, annotation_bytes, faults);
    layout!(c, TypedChecker, "kyozon_typed_checker": file, file_bytes, memory, memory_bytes, faults, fault_room,
        message, message_bytes, host, result, contents, image_bytes, properties);
    layout!(c, TypedRun, "kyozon_typed_run": version, flags, arguments, handles, operations, memory,
        memory_bytes, result, outcome, offset, message);
    layout!(c, TypedFilter, "kyozon_typed_filter": version, flags, interface, reserved, message);
    layout!(c, TypedGate, "kyozon_typed_gate": address, number, arguments);
    layout!(c, TypedBuild, "kyozon_typed_build": file, file_bytes, image, image_bytes, address, gates, gate_count,
        thunks, imports, import_count, outside, message, message_bytes, host, result, entry, properties, masks,
        outside_arguments);
    let shifts = shifted_constants();
    assert!(!shifts.is_empty());
    c.push_str(&shifts);

    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("layout.c");
    fs::write(&file, c).expect("write layout.c");
    let out = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(&file)
        .output()
        .expect("a C compiler named cc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
