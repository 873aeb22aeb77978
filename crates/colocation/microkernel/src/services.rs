//! System calls that reach the layer: reports, status, repairs, Linux's memory. Each needs a right.

use crate::kernel::Kernel;
use crate::machine::Machine;
use kyozon_abi::events::{MonitorStatus, MONITOR_ENDED, MONITOR_INDEX, STATUS_WORDS};
use kyozon_abi::layer::*;
use kyozon_abi::task::*;

// Sizes of the interface's structures in words.
const REPAIR_WORDS: usize = size_of::<RepairRequest>() / 8;
const WINDOW_WORDS: usize = size_of::<Window>() / 8;
const WRITE_ENTRY_WORDS: usize = size_of::<Write>() / 8;
const WRITES_WORDS: usize = size_of::<Writes>() / 8;

impl Kernel {
    /// An error unless the current task has all of `right`.
    pub(crate) fn needs(&self, right: u64) -> Result<(), i64> {
        let has = self.tasks[self.current_task()].rights & right == right;
        has.then_some(()).ok_or(E_RIGHT)
    }

    pub(crate) fn report(&mut self, address: u64, machine: &mut impl Machine) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let space = self.tasks[self.current_task()].space;
        let mut head = [0; size_of::<Report>() / 8];
        let mut line = [0; REPORT_BYTES as usize];
        if !space.read(machine, address, &mut head) {
            return Err(E_ADDRESS);
        }
        let [what, text, bytes] = head;
        let line = usize::try_from(bytes).ok().and_then(|n| line.get_mut(..n)).ok_or(E_ARGUMENT)?;
        if !space.read_bytes(machine, text, line) {
            return Err(E_ADDRESS);
        }
        service(machine.report(what as u32, (what >> 32) as u32, line))
    }

    pub(crate) fn publish(
        &mut self,
        index: u64,
        address: u64,
        machine: &mut impl Machine,
    ) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let space = self.tasks[self.current_task()].space;
        let mut words = [0; STATUS_WORDS];
        if index > MONITOR_INDEX as u64 {
            return Err(E_ARGUMENT);
        }
        if !space.read(machine, address, &mut words) {
            return Err(E_ADDRESS);
        }
        if index == MONITOR_INDEX as u64 {
            let task = self.current_task();
            let state = MonitorStatus::from_words(&words).state;
            self.tasks[task].supervision.explained = state == MONITOR_ENDED;
        }
        service(machine.publish(index, &words))
    }

    pub(crate) fn repair(&mut self, address: u64, machine: &mut impl Machine) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let space = self.tasks[self.current_task()].space;
        let mut words = [0; REPAIR_WORDS];
        if !space.read(machine, address, &mut words) {
            return Err(E_ADDRESS);
        }
        let mut request =
            RepairRequest { count: words[0], words: [RepairWord::default(); MAX_REPAIR_WORDS] };
        for (to, from) in request.words.iter_mut().zip(words[1..].chunks_exact(3)) {
            *to = RepairWord { address: from[0], expected: from[1], value: from[2] };
        }
        service(machine.repair(&request))
    }

    /// Returns only if the layer refuses.
    pub(crate) fn reset(&mut self, how: u64, machine: &mut impl Machine) -> Result<i64, i64> {
        self.needs(RIGHT_RESET)?;
        service(machine.reset(how))
    }

    pub(crate) fn linux_registers(
        &mut self,
        address: u64,
        of_another: u64,
        machine: &mut impl Machine,
    ) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let space = self.tasks[self.current_task()].space;
        let mut r = LinuxRegisters::default();
        let answer = match of_another {
            REGISTERS_OF_ANOTHER => machine.other_registers(&mut r),
            _ => machine.linux_registers(&mut r),
        };
        let answer = service(answer)?;
        let [b0, b1, b2, b3] = r.breakpoints;
        let words: [u64; size_of::<LinuxRegisters>() / 8] = [
            r.cpu,
            r.cr0,
            r.cr4,
            r.idt_base,
            r.idt_limit,
            r.gdt_base,
            r.gdt_limit,
            r.efer,
            r.star,
            r.lstar,
            r.cstar,
            r.sfmask,
            r.sysenter_cs,
            r.sysenter_esp,
            r.sysenter_eip,
            b0,
            b1,
            b2,
            b3,
            r.dr7,
        ];
        if !space.write(machine, address, &words) {
            return Err(E_ADDRESS);
        }
        Ok(answer)
    }

    pub(crate) fn watch(
        &mut self,
        base: u64,
        bytes: u64,
        space: u64,
        machine: &mut impl Machine,
    ) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        service(machine.watch(Range { base, bytes }, space))
    }

    pub(crate) fn writes(&mut self, address: u64, machine: &mut impl Machine) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let space = self.tasks[self.current_task()].space;
        let mut writes = Writes::NONE;
        // What is fetched is gone: a bad address must not lose it.
        if !space.write(machine, address, &[0; WRITES_WORDS]) {
            return Err(E_ADDRESS);
        }
        let answer = service(machine.writes(&mut writes))?;
        let mut words = [0; WRITES_WORDS];
        (words[0], words[1]) = (writes.count, writes.lost);
        let entries = words[2..].chunks_exact_mut(WRITE_ENTRY_WORDS);
        for (to, from) in entries.zip(writes.list()) {
            let head = [u64::from(from.kind) | u64::from(from.cpu) << 32, from.address];
            let all = head.into_iter().chain(from.before).chain(from.after);
            to.iter_mut().zip(all.chain([from.rip, from.cr3])).for_each(|(to, word)| *to = word);
        }
        let used = 2 + WRITE_ENTRY_WORDS * writes.list().len();
        space.write(machine, address, &words[..used]);
        Ok(answer)
    }

    pub(crate) fn window(&mut self, address: u64, machine: &mut impl Machine) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let space = self.tasks[self.current_task()].space;
        let mut window = Window { count: 0, ram: [Range::default(); MAX_RANGES] };
        let answer = service(machine.window(&mut window))?;
        let mut words = [0; WINDOW_WORDS];
        words[0] = window.count;
        for (to, from) in words[1..].chunks_exact_mut(2).zip(&window.ram) {
            to.copy_from_slice(&[from.base, from.bytes]);
        }
        if !space.write(machine, address, &words) {
            return Err(E_ADDRESS);
        }
        Ok(answer)
    }
}

/// The layer's answer as an answer to a task.
pub(crate) fn service(answer: i64) -> Result<i64, i64> {
    match answer {
        SERVICE_UNAVAILABLE => Err(E_UNAVAILABLE),
        SERVICE_BAD_ADDRESS => Err(E_ARGUMENT),
        answer => Ok(-answer),
    }
}
