//! Machine code of the hypervisor for AMD SVM.

use super::registers::{pop_kept, push_kept};
use crate::vmm::registers::efer::Features;
use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kyozon_abi::image_header;
use kyozon_abi::layer::IMAGE_HYPERVISOR;
use kyozon_abi::vmm::{
    HostEntry, CALL_LEAVE, HOST_LAUNCH, HOST_MAX_CPUS, HOST_STACKS, HOST_STACK_STRIDE,
};

/// General registers of a guest that the processor does not switch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the names are the registers'
pub struct Registers {
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

/// The registers of a CPU that is given back: its general registers, then RAX, RFLAGS, RIP and RSP.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Bare {
    /// As the guest had them.
    pub registers: Registers,
    #[allow(missing_docs)]
    pub rax: u64,
    #[allow(missing_docs)]
    pub rflags: u64,
    #[allow(missing_docs)]
    pub rip: u64,
    #[allow(missing_docs)]
    pub rsp: u64,
}

/// A descriptor table's limit and address, as LGDT and LIDT take them.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Table {
    /// Bytes, less one.
    pub limit: u16,
    /// Virtual address.
    pub base: u64,
}

extern "C" {
    /// Runs the guest whose control block is at physical address `block` until it exits.
    fn host_run(registers: *mut Registers, block: u64);
    /// The address behind VMRUN, where the host continues at an exit.
    fn host_run_exit();
    /// Continues with the registers in `bare`, without a hypervisor.
    fn host_give_back(bare: *const Bare) -> !;
    /// First instruction of a CPU that has become a guest.
    fn host_guest_start();
    /// Reads a register to `value`; 0 if it faults.
    fn host_try_rdmsr(msr: u32, value: *mut u64) -> u32;
    /// Writes a register; 0 if it faults.
    fn host_try_wrmsr(msr: u32, value: u64) -> u32;
    fn host_protection();
    fn host_nmi();
    fn host_machine_check();
    fn host_init();
    fn host_stubs();
    /// Machine checks that came while the hypervisor ran: of all CPUs, and of each.
    static HOST_MACHINE_CHECK: AtomicU32;
    static HOST_MACHINE_CHECKS: [AtomicU32; HOST_MAX_CPUS];
}

/// Loads [`Registers`] from the address in RDI, RDI last.
macro_rules! load_registers {
    () => {
        concat!(
            "mov rbx, [rdi]\nmov rcx, [rdi + 8]\nmov rdx, [rdi + 16]\nmov rsi, [rdi + 24]\nmov rbp, [rdi + 40]\n",
            "mov r8, [rdi + 48]\nmov r9, [rdi + 56]\nmov r10, [rdi + 64]\nmov r11, [rdi + 72]\n",
            "mov r12, [rdi + 80]\nmov r13, [rdi + 88]\nmov r14, [rdi + 96]\nmov r15, [rdi + 104]\n",
            "mov rdi, [rdi + 32]"
        )
    };
}

image_header!(IMAGE_HYPERVISOR, "host_entry");

global_asm!(
    ".section .data.host, \"aw\"",
    ".balign 8",
    ".globl HOST_MACHINE_CHECK, HOST_MACHINE_CHECKS",
    "HOST_MACHINE_CHECK: .long 0",
    "HOST_MACHINE_CHECKS: .zero 4 * {cpus}",

    ".section .text.host, \"ax\"",
    ".globl host_entry, host_guest_start, host_run, host_run_exit, host_give_back",
    ".globl host_nmi, host_machine_check, host_init, host_protection, host_stubs",
    ".globl host_try_rdmsr, host_try_wrmsr",

    // (rdi: *mut HostEntry), called by the trampoline on a stack that the guest keeps, with interrupts off. NMIs that
    // come before CLGI meet the trampoline's gate, which counts them. After a launch the caller goes on as a guest at
    // host_guest_start, with the stack as it is here.
    "host_entry:",
    "cmp dword ptr [rdi + {operation}], {launch_operation}",
    "jne 2f",
    "lea rsi, [rsp]",
    "sub rsp, 8",
    "call hypervisor_launch",
    "test rax, rax",
    "jz 1f",
    "clgi",
    "mov rsp, rax",
    "call hypervisor_run",
    "ud2",
    "1: add rsp, 8",
    "host_guest_start:",
    "ret",
    // The hypervisor does not return from this call as from others: the code that follows runs without it.
    "2: mov eax, {leave}",
    "vmmcall",
    "sub rsp, 8",
    "call hypervisor_left",
    "add rsp, 8",
    "ret",

    // (rdi: *mut Registers, rsi: block). GIF is 0 before and after. VMRUN keeps RSP, RIP, RFLAGS and RAX of the host.
    "host_run:",
    push_kept!(),
    "push rdi",
    "mov rax, rsi",
    load_registers!(),
    "vmrun rax",
    "host_run_exit:",
    "xchg rdi, [rsp]",
    "mov [rdi], rbx",
    "mov [rdi + 8], rcx",
    "mov [rdi + 16], rdx",
    "mov [rdi + 24], rsi",
    "mov [rdi + 40], rbp",
    "mov [rdi + 48], r8",
    "mov [rdi + 56], r9",
    "mov [rdi + 64], r10",
    "mov [rdi + 72], r11",
    "mov [rdi + 80], r12",
    "mov [rdi + 88], r13",
    "mov [rdi + 96], r14",
    "mov [rdi + 104], r15",
    "pop rax",
    "mov [rdi + 32], rax",
    pop_kept!(),
    "ret",

    // (rdi: *const Bare). Descriptor tables and control registers are already the guest's. The page tables map this
    // code and the guest's stack. The guest's interrupts are off.
    "host_give_back:",
    "mov rsp, [rdi + 136]",
    "push qword ptr [rdi + 128]",
    "push qword ptr [rdi + 120]",
    "mov rax, [rdi + 112]",
    load_registers!(),
    "stgi",
    "popfq",
    "ret",

    // The gates. The host takes an NMI only in `take_nmi`, whose loop ends then.
    "host_nmi: mov eax, 1",
    "iretq",
    // An INIT that became an exception (VM_CR.R_INIT): removes the error code.
    "host_init: mov eax, 1",
    "add rsp, 8",
    "iretq",
    // The stack tells the CPU.
    "host_machine_check:",
    "push rax",
    "push rcx",
    "mov rax, rsp",
    "sub rax, {stacks}",
    "shr rax, {stack_shift}",
    "lea rcx, [rip + HOST_MACHINE_CHECKS]",
    "lock inc dword ptr [rcx + 4 * rax]",
    "lock inc dword ptr [rip + HOST_MACHINE_CHECK]",
    "pop rcx",
    "pop rax",
    "iretq",

    // (edi: register, rsi: *mut u64) and (edi: register, rsi: value): EAX is 0 if the access faulted.
    "host_try_rdmsr:",
    "mov ecx, edi",
    "host_rdmsr: rdmsr",
    "shl rdx, 32",
    "or rax, rdx",
    "mov [rsi], rax",
    "mov eax, 1",
    "ret",
    "host_try_wrmsr:",
    "mov ecx, edi",
    "mov eax, esi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "host_wrmsr: wrmsr",
    "mov eax, 1",
    "ret",
    "host_refused: xor eax, eax",
    "ret",
    // A general protection fault of these two continues behind them; any other is the hypervisor's end. Above the error
    // code lies the faulting instruction's address.
    "host_protection:",
    "push rax",
    "lea rax, [rip + host_rdmsr]",
    "cmp [rsp + 16], rax",
    "je 1f",
    "lea rax, [rip + host_wrmsr]",
    "cmp [rsp + 16], rax",
    "je 1f",
    "pop rax",
    "jmp host_stubs + {protection} * {stub_bytes}",
    "1: lea rax, [rip + host_refused]",
    "mov [rsp + 16], rax",
    "pop rax",
    "add rsp, 8",
    "iretq",
    ".balign 16",
    "host_stubs:",
    ".set vector, 0",
    ".rept 32",
    ".balign 16",
    "mov edi, vector",
    "mov rsi, rsp",
    "jmp host_fault",
    ".set vector, vector + 1",
    ".endr",
    "host_fault:",
    "and rsp, -16",
    "call hypervisor_fault",
    "ud2",
    operation = const offset_of!(HostEntry, operation),
    launch_operation = const HOST_LAUNCH,
    leave = const CALL_LEAVE,
    protection = const PROTECTION,
    stub_bytes = const STUB_BYTES,
    cpus = const HOST_MAX_CPUS,
    stacks = const HOST_STACKS,
    stack_shift = const HOST_STACK_STRIDE.trailing_zeros(),
);

const _: () =
    assert!(HOST_STACK_STRIDE.is_power_of_two() && HOST_STACKS.is_multiple_of(HOST_STACK_STRIDE));

const _: () = assert!(offset_of!(Bare, rax) == 112 && offset_of!(Registers, rdi) == 32);

/// Code selector of the hypervisor: Linux's, so that no selector has to be reloaded.
pub const KERNEL_CODE: u16 = 0x10;
/// Its stack selector.
pub const KERNEL_DATA: u16 = 0x18;

/// Address of the first instruction of a CPU that has become a guest.
pub fn guest_start() -> u64 {
    host_guest_start as *const () as u64
}

/// Runs a guest until it exits.
///
/// # Safety
///
/// `block` is the physical address of a control block whose guest cannot reach the hypervisor's memory, and GIF is 0.
pub unsafe fn run_guest(registers: &mut Registers, block: u64) {
    // SAFETY: the caller's promise.
    unsafe { host_run(registers, block) }
}

/// Whether a control block with this RIP and CR3 contains the hypervisor's own state, behind VMRUN. No guest has both
/// values. The guest's state is lost then: an exit has stored the host's state in its place. No processor does that;
/// QEMU does (docs/emulators.md).
pub fn is_hosts(rip: u64, cr3: u64) -> bool {
    rip == host_run_exit as *const () as u64 && cr3 == super::cr3()
}

/// Continues with the registers in `bare`.
///
/// # Safety
///
/// All other state must be the guest's.
pub unsafe fn give_back(bare: &Bare) -> ! {
    // SAFETY: the caller's promise.
    unsafe { host_give_back(bare) }
}

/// Takes the pending NMI or INIT through a gate that does nothing.
///
/// # Safety
///
/// The hypervisor's descriptor tables are live.
pub unsafe fn take_nmi() {
    // The gate ends the loop. The limit is for an emulator that has lost the interrupt.
    const TURNS: u32 = 1000;
    // SAFETY: maskable interrupts are off in the host; the gates change EAX only.
    unsafe {
        asm!("mov eax, {turns}", "stgi", "2: dec eax", "jg 2b", "clgi", turns = const TURNS, out("eax") _);
    }
}

/// Machine checks that came while the hypervisor ran on CPU `index`, since the last call there.
pub fn machine_checks(index: u32) -> u32 {
    // SAFETY: an atomic of the machine code.
    let all = unsafe { &HOST_MACHINE_CHECK };
    if all.load(Relaxed) == 0 {
        return 0;
    }
    take_machine_checks(all, index)
}

#[cold]
fn take_machine_checks(all: &AtomicU32, index: u32) -> u32 {
    // SAFETY: atomics of the machine code.
    let own = unsafe { &HOST_MACHINE_CHECKS[index as usize] }.swap(0, Relaxed);
    all.fetch_sub(own, Relaxed);
    own
}

/// Reads `bytes` bytes from a port into RAX as an instruction would, with `rax` as the rest of the register.
///
/// # Safety
///
/// The read must be harmless.
pub unsafe fn input(port: u16, bytes: u32, rax: u64) -> u64 {
    let mut rax = rax;
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => {
                asm!("in al, dx", in("dx") port, inout("rax") rax, options(nostack, preserves_flags))
            }
            2 => {
                asm!("in ax, dx", in("dx") port, inout("rax") rax, options(nostack, preserves_flags))
            }
            _ => {
                asm!("in eax, dx", in("dx") port, inout("rax") rax, options(nostack, preserves_flags))
            }
        }
    }
    rax
}

/// Writes the low `bytes` bytes of `value` to a port.
///
/// # Safety
///
/// The write must be harmless.
pub unsafe fn output(port: u16, bytes: u32, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => {
                asm!("out dx, al", in("dx") port, in("eax") value, options(nostack, preserves_flags))
            }
            2 => {
                asm!("out dx, ax", in("dx") port, in("eax") value, options(nostack, preserves_flags))
            }
            _ => {
                asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags))
            }
        }
    }
}

/// Writes the caches back and empties them.
pub fn write_back() {
    // SAFETY: memory keeps its contents.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
}

/// Whether control blocks have a SPEC_CTRL of their own. APM 2 15.34.
pub fn has_virtual_spec_ctrl() -> bool {
    core::arch::x86_64::__cpuid(0x8000_000a).edx >> 20 & 1 != 0
}

/// What the processor says about features with bits in EFER.
pub fn features() -> Features {
    let leaf = core::arch::x86_64::__cpuid;
    let last = leaf(0x8000_0000).eax;
    let (extended, sizes) = (leaf(0x8000_0001), leaf(0x8000_0008));
    Features {
        extended_ecx: extended.ecx,
        extended_edx: extended.edx,
        sizes_ebx: sizes.ebx,
        more_eax: if last >= 0x8000_0021 { leaf(0x8000_0021).eax } else { 0 },
    }
}

/// Saves FS, GS, TR, LDTR, KernelGSBase, STAR, LSTAR, CSTAR, SFMASK and SYSENTER_* to a control block.
///
/// # Safety
///
/// `block` is the physical address of a control block.
pub unsafe fn save(block: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("vmsave rax", in("rax") block, options(nostack, preserves_flags)) };
}

/// Loads the same registers from a control block.
///
/// # Safety
///
/// As for [`save`], and the registers are those of the guest that runs next.
pub unsafe fn load(block: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("vmload rax", in("rax") block, options(nostack, preserves_flags)) };
}

/// Linux's registers that the processor does not switch at an exit.
#[repr(C, align(16))]
pub struct Live {
    /// The x87 unit's and the vector registers, as FXSAVE writes them.
    pub fpu: [u64; 64],
    /// Debug registers 0 to 3, CR8, XCR0, TSC_AUX.
    pub registers: [u64; 7],
}

impl Live {
    /// Their present values; 0 for those that this CPU does not have. CR0.TS must be clear, or FXSAVE would fault: the
    /// hypervisor runs with Linux's CR0, in which it is.
    pub fn take() -> Self {
        const TSC_AUX: u32 = 0xc000_0103;
        const RDTSCP: u32 = 1 << 27;
        let mut live = Self { fpu: [0; 64], registers: [0; 7] };
        let r = &mut live.registers;
        // SAFETY: reads registers that exist, some of them only if the CPU says so; 512 bytes, aligned to 16.
        unsafe {
            asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3", "mov {}, cr8", out(reg) r[0],
                 out(reg) r[1], out(reg) r[2], out(reg) r[3], out(reg) r[4], options(nomem, nostack, preserves_flags));
            if cr4() & super::CR4_OSXSAVE != 0 {
                let (low, high): (u32, u32);
                asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
                r[5] = u64::from(high) << 32 | u64::from(low);
            }
            if core::arch::x86_64::__cpuid(0x8000_0001).edx & RDTSCP != 0 {
                r[6] = rdmsr(TSC_AUX);
            }
            asm!("fxsave64 [{}]", in(reg) &mut live.fpu, options(nostack, preserves_flags));
        }
        live
    }
}

/// A model-specific register.
///
/// # Safety
///
/// It must exist.
pub unsafe fn rdmsr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nostack, preserves_flags))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// A model-specific register, or `None` if the processor refuses to read it.
pub fn try_rdmsr(msr: u32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: a fault is caught. Reads of registers have no effect, and the hypervisor's tables are live.
    (unsafe { host_try_rdmsr(msr, &mut value) } != 0).then_some(value)
}

/// Sets a model-specific register, and returns whether the processor accepted the value.
///
/// # Safety
///
/// The hypervisor and Linux must be able to run with the value. The hypervisor's descriptor tables are live.
pub unsafe fn try_wrmsr(msr: u32, value: u64) -> bool {
    // SAFETY: the caller's promise; a fault is caught.
    unsafe { host_try_wrmsr(msr, value) != 0 }
}

/// Sets a model-specific register.
///
/// # Safety
///
/// The hypervisor and Linux must be able to run with the value.
pub unsafe fn wrmsr(msr: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

macro_rules! control {
    ($($get:ident $set:ident $name:literal)*) => {$(
        /// The register.
        pub fn $get() -> u64 {
            let value;
            // SAFETY: reads a register that exists.
            unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags)) };
            value
        }
        /// Sets the register.
        ///
        /// # Safety
        ///
        /// The code that follows must be able to run with the value.
        #[allow(dead_code)]
        pub unsafe fn $set(value: u64) {
            // SAFETY: the caller's promise.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) };
        }
    )*};
}
control!(cr0 set_cr0 "cr0" cr2 set_cr2 "cr2" cr4 set_cr4 "cr4" dr6 set_dr6 "dr6" dr7 set_dr7 "dr7");

/// Selectors of ES and DS.
pub fn data_selectors() -> (u16, u16) {
    let (es, ds): (u32, u32);
    // SAFETY: reads registers.
    unsafe {
        asm!("mov {0:e}, es", "mov {1:e}, ds", out(reg) es, out(reg) ds, options(nomem, nostack, preserves_flags));
    }
    (es as u16, ds as u16)
}

/// Loads SS, ES and DS.
///
/// # Safety
///
/// The live descriptor table contains them.
pub unsafe fn set_data_selectors(ss: u16, es: u16, ds: u16) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("mov ss, {0:e}", "mov es, {1:e}", "mov ds, {2:e}", in(reg) u32::from(ss), in(reg) u32::from(es),
             in(reg) u32::from(ds), options(nostack, preserves_flags));
    }
}

/// The live global and interrupt descriptor tables.
pub fn tables() -> (Table, Table) {
    let (mut gdt, mut idt) = (Table::default(), Table::default());
    // SAFETY: stores registers.
    unsafe {
        asm!("sgdt [{}]", "sidt [{}]", in(reg) &mut gdt, in(reg) &mut idt, options(nostack, preserves_flags));
    }
    (gdt, idt)
}

/// Makes descriptor tables live.
///
/// # Safety
///
/// They must be valid descriptor tables as long as they are live, and contain the loaded selectors.
pub unsafe fn set_tables(gdt: Table, idt: Table) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("lgdt [{}]", "lidt [{}]", in(reg) &gdt, in(reg) &idt, options(nostack, preserves_flags));
    }
}

const NMI: usize = 2;
const PROTECTION: usize = 13;
const MACHINE_CHECK: usize = 18;
/// #SX.
const SECURITY: usize = 30;
const STUB_BYTES: u64 = 16;

/// The gate of `vector` in the hypervisor's table. It switches no stack: GIF is 0 nearly always.
pub fn gate(vector: usize) -> [u64; 2] {
    let at = match vector {
        NMI => host_nmi as *const () as u64,
        PROTECTION => host_protection as *const () as u64,
        MACHINE_CHECK => host_machine_check as *const () as u64,
        SECURITY => host_init as *const () as u64,
        _ => host_stubs as *const () as u64 + vector as u64 * STUB_BYTES,
    };
    let low = at & 0xffff | u64::from(KERNEL_CODE) << 16 | 0x8e00 << 32 | (at >> 16 & 0xffff) << 48;
    [low, at >> 32]
}

/// Stops this CPU.
///
/// # Safety
///
/// GIF is 0, and no code waits for this CPU.
pub unsafe fn halt_forever() -> ! {
    loop {
        // SAFETY: GIF is 0: no interrupt wakes this CPU.
        unsafe { asm!("hlt", options(nomem, nostack)) };
    }
}
