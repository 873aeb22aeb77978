//! The classes of findings. An operator's policy and programs that read events know findings by them.

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $text:literal $(, $trait:ident)*;)*) => {
        /// What a finding is about. A class keeps its name for ever, and its number for one version of this crate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Class {
            $($(#[$doc])* $name,)*
        }

        impl Class {
            /// Every class, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name, such as `kernel.text.modified`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Whether an intruder chooses the found value: another one is news about the same object.
            pub fn has_chosen_value(self) -> bool {
                matches!(
                    self,
                    Self::RegisterModified
                        | Self::InterruptTableModified
                        | Self::DescriptorModified
                        | Self::HookModified
                        | Self::ProgramRedirected
                )
            }

            /// Whether the monitor can repair some findings of this class.
            pub fn is_repairable(self) -> bool {
                match self {
                    $(Self::$name => false $(|| stringify!($trait) == "repairable")*,)*
                }
            }

            /// Whether its findings blame a module, whose hooks the monitor can take out.
            pub fn blames_module(self) -> bool {
                match self {
                    $(Self::$name => false $(|| stringify!($trait) == "module")*,)*
                }
            }

            /// Whether its findings are about a process, which the monitor can have Linux end.
            pub fn is_about_process(self) -> bool {
                match self {
                    $(Self::$name => false $(|| stringify!($trait) == "process")*,)*
                }
            }
        }
    };
}

classes! {
    /// Code of the kernel differs from what Linux's own records allow.
    TextModified = "kernel.text.modified", repairable;
    /// Read-only data of the kernel differs from its first look.
    RodataModified = "kernel.rodata.modified", repairable;
    /// Code differed from the kernel package's image when the monitor was loaded.
    TextModifiedBeforeLoad = "kernel.text.modified-before-load";
    /// Read-only data differed from the kernel package's image when the monitor was loaded.
    RodataModifiedBeforeLoad = "kernel.rodata.modified-before-load";
    /// A process or thread is not in all the structures that have each one.
    ProcessHidden = "process.hidden", repairable, process;
    /// A list of processes cannot be walked to its end.
    ProcessListDamaged = "process.list-damaged";
    /// A task has privileges that Linux did not give it.
    PrivilegesGained = "process.privileges-gained", process;
    /// The filter of a task's system calls (seccomp) was taken away.
    FilterLifted = "process.filter-lifted", process;
    /// A register of a CPU does not protect the kernel, or leads out of its entry code.
    RegisterModified = "cpu.register.modified";
    /// The interrupt table was moved, or a gate leads out of the kernel's entry code.
    InterruptTableModified = "cpu.interrupt-table.modified";
    /// A CPU's descriptors, or the stacks in its task state segment, were changed, or the table was moved.
    DescriptorModified = "cpu.descriptor.modified";
    /// A module is not in all the structures that have each one.
    ModuleHidden = "module.hidden", module;
    /// The kernel's taint was cleared.
    TaintCleared = "module.taint-cleared";
    /// Executable memory of the kernel has no owner.
    ExecutableHidden = "memory.executable.hidden";
    /// Executable memory of the kernel is writable.
    ExecutableWritable = "memory.executable.writable";
    /// What is read-only in the kernel's image is mapped writable.
    ReadOnlyWritable = "memory.read-only.writable";
    /// Linux calls code of no listed owner.
    HookHidden = "hook.hidden", module;
    /// A listed module hooks a function whose results tell user space what exists.
    HookSensitive = "hook.sensitive", module;
    /// Operations that Linux never changes were changed.
    HookModified = "hook.modified";
    /// A CPU takes no timer interrupts.
    LinuxStalled = "linux.stalled";
    /// Linux has panicked, and waits for ever.
    LinuxPanicked = "linux.panicked";
    /// A protection that Linux lets nobody take back was taken back.
    ProtectionLifted = "setting.protection-lifted";
    /// A program that the kernel starts by itself lies outside the system's directories.
    ProgramRedirected = "setting.program-redirected";
    /// A BPF program is not in all the structures that have each one.
    BpfProgramHidden = "bpf.program-hidden";
    /// The code of a BPF program differs from its first look.
    BpfProgramModified = "bpf.program-modified";
    /// A BPF program can write to the memory of processes, or decide what functions return.
    BpfProgramSensitive = "bpf.program-sensitive";
    /// Code of a listed module differs from its first look.
    ModuleTextModified = "module.text.modified";
    /// The image of the crash kernel, or the way to it, differs from its first look.
    CrashKernelModified = "crash-kernel.modified";
}

impl Class {
    /// The code of an event that check number `check` reports, about a finding of `class` if there is one.
    pub fn event_code(class: Option<Self>, check: usize) -> u32 {
        let number = class.map_or(0, |class| 1 + class as u32);
        number << CHECK_BITS | check as u32 & ((1 << CHECK_BITS) - 1)
    }

    /// The class in the code of an event, if it is about a finding, and the rest of the code.
    pub fn of_event(code: u32) -> (Option<Self>, u32) {
        let number = (code >> CHECK_BITS) as usize;
        match number.checked_sub(1).and_then(|number| Self::ALL.get(number)) {
            Some(class) => (Some(*class), code & ((1 << CHECK_BITS) - 1)),
            None => (None, code),
        }
    }

    /// The class called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.name() == name)
    }
}

/// Bits of an event's code that have the number of the check.
const CHECK_BITS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_by_its_name() {
        for (number, class) in Class::ALL.iter().enumerate() {
            assert_eq!((Class::named(class.name()), *class as usize), (Some(*class), number));
        }
        assert_eq!(Class::named("kernel.text"), None);
        for class in Class::ALL.iter().copied().map(Some).chain([None]) {
            let code = Class::event_code(class, 7);
            assert_eq!(Class::of_event(code), (class, 7));
        }
        assert_eq!(Class::of_event(u32::MAX), (None, u32::MAX));
        assert!(Class::ProcessHidden.is_repairable() && !Class::HookHidden.is_repairable());
        assert!(Class::HookHidden.blames_module() && !Class::HookModified.blames_module());
        assert!(Class::FilterLifted.is_about_process() && !Class::TextModified.is_about_process());
    }
}
