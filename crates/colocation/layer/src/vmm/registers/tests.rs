use super::*;

/// Every register that the permission map has, and some of those around it.
fn all() -> impl Iterator<Item = u32> {
    (0..0x4000).chain(0xbfff_f000..0xc000_4000).chain(0xc000_f000..0xc001_4000)
}

#[test]
fn registers_outside_the_map_fault() {
    for msr in all().chain([0x4b56_4d00, 0x4000_0000, u32::MAX]).filter(|m| msr_bit(*m).is_none()) {
        let machine_check = (0xc000_2000..0xc000_2400).contains(&msr);
        assert_eq!(may_read(msr), machine_check, "{msr:#x}");
        assert!(!is_guarded(msr), "{msr:#x}");
        for current in [None, Some(0), Some(1)] {
            let expected = if machine_check { Write::Pass(1) } else { Write::Fault };
            assert_eq!(write(msr, 1, current), expected, "{msr:#x}");
        }
    }
}

#[test]
fn guarded_registers_keep_their_value() {
    for msr in all().filter(|m| is_guarded(*m) && *m != EFER && !is_write_only(*m)) {
        assert!(may_read(msr));
        assert_eq!(write(msr, 5, Some(5)), Write::Keep, "{msr:#x}");
        assert_eq!(write(msr, 1 << 7, Some(5)), Write::Refuse, "{msr:#x}");
        assert_eq!(write(msr, 5, None), Write::Fault, "{msr:#x} does not exist");
    }
}

#[test]
fn write_only_registers_refuse_every_value() {
    for (value, current) in [(0, Some(0)), (0, None), (1, None)] {
        assert_eq!(write(0xc001_0020, value, current), Write::Refuse);
        assert_eq!(write(0xc001_011b, value, current), Write::Refuse);
    }
}

#[test]
fn amds_range_is_guarded_unless_listed() {
    let free = (0xc001_0000..=0xc001_1fff).filter(|msr| !is_guarded(*msr)).count();
    assert_eq!(free, 8 + 1 + 1 + 12 + 12 + 8 + 256 + 2 + 3 + 1 + 1);
    let dangerous = [
        0xc001_0010, // SYSCFG
        0xc001_0016, // IORRBase0
        0xc001_001a, // TOP_MEM
        0xc001_0020, // the microcode loader
        0xc001_0056, // SMI_ON_IO_TRAP
        0xc001_0058, // MMIO_CONF_BASE
        0xc001_0064, // voltages
        0xc001_0111, // SMM_BASE
        0xc001_0112, // SMM_ADDR
        0xc001_0113, // SMM_MASK
        VM_CR,
        VM_HSAVE_PA,
        0xc001_011b, // AVIC_DOORBELL
        0xc001_0132, // RMP_BASE
        0xc001_1030, // IBS_FETCH_CTL
        0xc001_1033, // IBS_OP_CTL
        0xc001_103a, // IBS_CTL
        TSC,
        TSC_ADJUST,
        TSC_RATIO,
        DEBUG_CONTROL,
        APIC_BASE,
        0x200,
        0x20f,
        0x2ff,
    ];
    assert_eq!(dangerous.into_iter().find(|msr| !is_guarded(*msr)), None);
}

#[test]
fn registers_of_task_switches_do_not_exit() {
    // SPEC_CTRL, PRED_CMD, PAT, the deadline timer, bases, TSC_AUX, counters, VIRT_SPEC_CTRL, LS_CFG.
    let often =
        [0x48, 0x49, 0x277, 0x6e0, 0xc000_0100, 0xc000_0102, 0xc000_0103, 0xc001_0200, 0xc001_011f];
    assert_eq!(often.into_iter().find(|msr| is_guarded(*msr)), None);
}

#[test]
fn harmless_bits_of_hwcr_can_change() {
    let current = 1 << 25 | 1;
    for bit in 0..64 {
        let value = current ^ 1 << bit;
        let expected = if matches!(bit, 18 | 25 | 30) { Write::Pass(value) } else { Write::Refuse };
        assert_eq!(write(HARDWARE_CONFIGURATION, value, Some(current)), expected, "bit {bit}");
    }
}

#[test]
fn debug_control_gains_block_steps_only() {
    for bit in 0..64 {
        let one = 1 << bit;
        let expected = if bit == 1 { Write::Pass(one) } else { Write::Refuse };
        assert_eq!(write(DEBUG_CONTROL, one, Some(0)), expected, "bit {bit}");
        assert_eq!(write(DEBUG_CONTROL, 0, Some(one)), Write::Pass(0), "bit {bit}");
    }
}
