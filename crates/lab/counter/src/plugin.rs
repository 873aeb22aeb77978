//! The border to QEMU: its plug-in interface, version 1 (docs/devel/tcg-plugins.rst in QEMU's sources).

use crate::calls::Calls;
use crate::code::{event, is_transfer, is_vmmcall};
use crate::trip::{Block, Map, Recorder};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

type Id = u64;
type Tb = *mut c_void;
type Insn = *mut c_void;

/// The version of the plug-in interface, which QEMU checks before it calls anything.
#[no_mangle]
pub static qemu_plugin_version: c_int = 1;

/// `qemu_info_t`.
#[repr(C)]
pub struct Info {
    target_name: *const c_char,
    version: [c_int; 2],
    system_emulation: bool,
    smp_vcpus: c_int,
    max_vcpus: c_int,
}

const NO_REGISTERS: c_int = 0;
const READ_AND_WRITE: c_int = 3;

extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, Tb));
    fn qemu_plugin_register_atexit_cb(
        id: Id,
        callback: extern "C" fn(Id, *mut c_void),
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: Tb,
        callback: extern "C" fn(c_uint, *mut c_void),
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        insn: Insn,
        callback: extern "C" fn(c_uint, u32, u64, *mut c_void),
        flags: c_int,
        kind: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(tb: Tb) -> usize;
    fn qemu_plugin_tb_get_insn(tb: Tb, index: usize) -> Insn;
    fn qemu_plugin_insn_data(insn: Insn) -> *const u8;
    fn qemu_plugin_insn_size(insn: Insn) -> usize;
    fn qemu_plugin_insn_vaddr(insn: Insn) -> u64;
    fn qemu_plugin_get_hwaddr(info: u32, address: u64) -> *const c_void;
    fn qemu_plugin_hwaddr_is_io(hwaddr: *const c_void) -> bool;
}

struct State {
    out: PathBuf,
    map: Map,
    recorder: Recorder,
    /// Counts calls in place of trips.
    calls: Option<Calls>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Runs `f` on the state, if the plug-in was installed.
fn with(f: impl FnOnce(&mut State)) {
    if let Ok(mut state) = STATE.lock() {
        if let Some(state) = state.as_mut() {
            f(state);
        }
    }
}

struct Options {
    out: PathBuf,
    map: Map,
    calls: bool,
}

/// `out=FILE`, `ours=LOW-HIGH`, `cokernel=LOW-HIGH`, `calls=1`; addresses are hexadecimal.
fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Options, String> {
    let range = |text: &str| -> Result<Range<u64>, String> {
        let bound = |text: &str| u64::from_str_radix(text, 16).map_err(|e| format!("{text}: {e}"));
        let (low, high) = text.split_once('-').ok_or(format!("{text}: not LOW-HIGH"))?;
        Ok(bound(low)?..bound(high)?)
    };
    let (mut out, mut map, mut calls) = (None, Map::default(), false);
    for word in words {
        match word.split_once('=') {
            Some(("out", path)) => out = Some(PathBuf::from(path)),
            Some(("ours", text)) => map.ours.push(range(text)?),
            Some(("cokernel", text)) => map.cokernel = range(text)?,
            Some(("calls", "1")) => calls = true,
            _ => return Err(format!("{word}: not out=, ours=, cokernel= or calls=1")),
        }
    }
    let out = out.ok_or("out=FILE is missing")?;
    if map.ours.is_empty() || map.cokernel.is_empty() {
        return Err("ours= or cokernel= is missing".into());
    }
    Ok(Options { out, map, calls })
}

/// Called once, when QEMU starts. If the result is not 0, QEMU ends with an error.
///
/// # Safety
///
/// `info` is valid, and `argv` has `argc` C strings, as QEMU calls it.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller guarantees both pointers.
    let (info, words) = unsafe {
        let words: Vec<&CStr> = (0..argc as usize).map(|i| CStr::from_ptr(*argv.add(i))).collect();
        (&*info, words)
    };
    let options = match parse(words.iter().map(|word| word.to_str().unwrap_or("?"))) {
        Ok(options) if info.smp_vcpus == 1 => options,
        Ok(_) => {
            eprintln!("kyozon-counter: several CPUs cannot be counted: use -smp 1");
            return 1;
        }
        Err(why) => {
            eprintln!("kyozon-counter: {why}");
            return 1;
        }
    };
    let Options { out, map, calls } = options;
    let calls = calls.then(Calls::default);
    if let Ok(mut state) = STATE.lock() {
        *state = Some(State { out, map: map.clone(), recorder: Recorder::new(map), calls });
    }
    // SAFETY: QEMU's functions, as it declares them; the callbacks live as long as the process.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
    }
    0
}

extern "C" fn translated(_: Id, tb: Tb) {
    let mut block = Block::default();
    let mut instructions = Vec::new();
    // SAFETY: QEMU's handles are valid during this call, and an instruction has as many bytes as QEMU reports.
    unsafe {
        for index in 0..qemu_plugin_tb_n_insns(tb) {
            let insn = qemu_plugin_tb_get_insn(tb, index);
            let size = qemu_plugin_insn_size(insn);
            let bytes = std::slice::from_raw_parts(qemu_plugin_insn_data(insn), size);
            block.last = qemu_plugin_insn_vaddr(insn);
            if index == 0 {
                block.start = block.last;
            }
            block.end = block.last.wrapping_add(size as u64);
            block.instructions += 1;
            block.transfers = is_transfer(bytes);
            block.halts = bytes == [0xf4];
            if let Some(event) = event(bytes) {
                block.events[event as usize] += 1;
            }
            instructions.push(insn);
            if is_vmmcall(bytes) {
                break;
            }
        }
    }
    let mut watched = false;
    with(|state| watched = state.map.is_watched(block.start));
    // QEMU keeps this pointer as long as its translation, and does not report when that ends: the block is never freed.
    let data: *mut Block = Box::leak(Box::new(block));
    // SAFETY: as above; `data` is never freed.
    unsafe {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, data.cast());
        for insn in instructions.into_iter().filter(|_| watched) {
            qemu_plugin_register_vcpu_mem_cb(
                insn,
                accessed,
                NO_REGISTERS,
                READ_AND_WRITE,
                std::ptr::null_mut(),
            );
        }
    }
}

extern "C" fn executed(_: c_uint, data: *mut c_void) {
    // SAFETY: a block that `translated` made and that is never freed or written.
    let block = unsafe { &*data.cast::<Block>() };
    with(|state| match &mut state.calls {
        Some(calls) => calls.block(block),
        None => state.recorder.block(block),
    });
}

extern "C" fn accessed(_: c_uint, info: u32, address: u64, _: *mut c_void) {
    // SAFETY: QEMU's functions; the handle is valid in this call.
    let mmio = unsafe {
        let hwaddr = qemu_plugin_get_hwaddr(info, address);
        !hwaddr.is_null() && qemu_plugin_hwaddr_is_io(hwaddr)
    };
    with(|state| match &mut state.calls {
        Some(calls) => calls.access(mmio),
        None => state.recorder.access(address, mmio),
    });
}

extern "C" fn at_exit(_: Id, _: *mut c_void) {
    with(|state| {
        let report = match &state.calls {
            Some(calls) => calls.report(),
            None => state.recorder.report(),
        };
        if let Err(error) = std::fs::write(&state.out, report) {
            eprintln!("kyozon-counter: {}: {error}", state.out.display());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let good = [
            "out=/tmp/x",
            "ours=1000-2000",
            "ours=ffffffffc0000000-ffffffffff000000",
            "cokernel=20000000-30000000",
        ];
        let options = parse(good.into_iter()).unwrap();
        assert_eq!((options.map.ours.len(), options.map.cokernel.start), (2, 0x2000_0000));
        for bad in [&good[1..], &good[..1], &["out=x", "ours=1000", "cokernel=1-2"], &["loud"]] {
            assert!(parse(bad.iter().copied()).is_err(), "{bad:?}");
        }
    }
}
