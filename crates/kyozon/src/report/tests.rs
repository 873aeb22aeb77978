use super::*;

/// The status of a running cokernel.
pub(crate) fn status() -> Status {
    Status {
        version: device::DEVICE_VERSION,
        state: device::STATE_RUNNING,
        mode: layer::MODE_NONE,
        tick_hz: 100,
        budget_us: 200,
        cpu: 1,
        tick_source: device::TICK_HPET_MSI,
        locked: 0,
        ticks: 12,
        missed: 0,
        overruns: 0,
        longest_ns: 12_345,
        p99_ns: 8_192,
        reserve_bytes: 5 << 20,
        events_bytes: 0,
        differences: 0,
        message: [0; 232],
        exits: [0; kyozon_abi::vmm::EXIT_REASONS],
        wall_findings: 0,
        nested_bytes: 0,
        iommu: device::IOMMU_NONE,
        reserved2: 0,
    }
}

#[test]
fn load_line_shows_whether_the_monitor_repairs() {
    for (watch, part) in [
        (Watch::Off, "loaded: a cokernel on CPU 1 with 100 ticks"),
        (Watch::Report, "loaded: the monitor, which reports but does not repair, on CPU 1 with"),
        (Watch::Policy, "loaded: the monitor, which reports and follows the policy, on CPU 1 with"),
        (Watch::Repair, "loaded: the monitor, which reports and repairs, on CPU 1 with"),
    ] {
        let line = loaded(&status(), watch);
        assert!(line.starts_with(part) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn text_shows_state_ticks_stops_memory_and_reason() {
    let mut stopped = Status { state: device::STATE_STOPPED, overruns: 1, ..status() };
    stopped.message[..4].copy_from_slice(b"#UD!");
    let text = text(&Some(Snapshot { status: stopped, checks: Vec::new(), monitor: None }));
    for part in [
        "stopped on CPU 1",
        "12 at 100 Hz from HPET (MSI)",
        "longest 12.3 us",
        "cut off 1 times",
        "5.0 MiB",
        "reason   #UD!",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(super::text(&None), "nothing is loaded");
}

#[test]
fn json_has_state_times_and_message() {
    let value: serde_json::Value = serde_json::from_str(
        &json(&Some(Snapshot { status: status(), checks: Vec::new(), monitor: None })).unwrap(),
    )
    .unwrap();
    assert_eq!(
        (&value["state"], &value["longest_ns"], &value["message"]),
        (&json!("running"), &json!(12_345), &json!(null))
    );
    let value: serde_json::Value = serde_json::from_str(&json(&None).unwrap()).unwrap();
    assert_eq!(value, json!({ "state": "empty" }));
}
