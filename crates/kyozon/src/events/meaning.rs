//! What events mean to those who read them on other systems: kind, severity, techniques of attackers.

use kyozon_abi::events::{
    EVENT_FAULT, EVENT_FINDING, EVENT_NOTE, EVENT_REPAIR, EVENT_RESTART, EVENT_WALL,
};
use kyozon_monitor::class::Class;

/// How severe an event is: the severities of RFC 5424, which are syslog's and the journal's priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Alert = 1,
    Critical,
    Error,
    Warning,
    Notice,
    Info,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Critical => "critical",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
        }
    }
}

/// The name of a kind of event.
pub fn kind(number: u32) -> String {
    match number {
        EVENT_NOTE => "note".into(),
        EVENT_FINDING => "finding".into(),
        EVENT_REPAIR => "repair".into(),
        EVENT_FAULT => "fault".into(),
        EVENT_WALL => "wall".into(),
        EVENT_RESTART => "restart".into(),
        _ => format!("kind {number}"),
    }
}

/// The severity of an event of this kind, about a finding of `class` if there is one.
pub fn severity(kind: u32, class: Option<Class>) -> Severity {
    match (kind, class) {
        (EVENT_FINDING, Some(class)) => of_class(class),
        (EVENT_FINDING | EVENT_WALL, _) => Severity::Critical,
        (EVENT_RESTART, _) => Severity::Alert,
        (EVENT_FAULT, _) => Severity::Error,
        (EVENT_REPAIR, _) => Severity::Notice,
        _ => Severity::Info,
    }
}

fn of_class(class: Class) -> Severity {
    match class {
        Class::LinuxStalled | Class::LinuxPanicked => Severity::Alert,
        // Listed code may have a reason.
        Class::HookSensitive | Class::ExecutableWritable => Severity::Warning,
        Class::ProcessListDamaged | Class::TaintCleared | Class::HookModified => Severity::Error,
        _ => Severity::Critical,
    }
}

/// How sure a finding of `class` is tampering.
pub fn confidence(class: Class) -> &'static str {
    match class {
        // Code that is listed may have a reason, an administrator may choose the program, and a CPU may be lost.
        Class::HookSensitive
        | Class::ExecutableWritable
        | Class::ProgramRedirected
        | Class::LinuxStalled
        | Class::LinuxPanicked => "medium",
        _ => "high",
    }
}

/// The version of MITRE ATT&CK (Enterprise) whose techniques [`techniques`] names.
pub const ATTACK_VERSION: &str = "13.1";

/// The techniques of MITRE ATT&CK that a finding of `class` is a sign of. None: it may have another cause.
pub fn techniques(class: Class) -> &'static [&'static str] {
    const ROOTKIT: &str = "T1014";
    const MODULE: &str = "T1547.006";
    const HIDE_ARTIFACTS: &str = "T1564";
    const REMOVE_INDICATORS: &str = "T1070";
    const REFLECTIVE_LOADING: &str = "T1620";
    const EXPLOITATION: &str = "T1068";
    const DISABLE_TOOLS: &str = "T1562.001";
    match class {
        Class::TextModified
        | Class::RodataModified
        | Class::TextModifiedBeforeLoad
        | Class::RodataModifiedBeforeLoad
        | Class::RegisterModified
        | Class::InterruptTableModified
        | Class::DescriptorModified
        | Class::ProcessListDamaged
        | Class::HookModified
        | Class::ModuleTextModified
        | Class::ReadOnlyWritable
        | Class::CrashKernelModified
        | Class::BpfProgramModified
        | Class::BpfProgramSensitive => &[ROOTKIT],
        Class::ProcessHidden | Class::BpfProgramHidden => &[ROOTKIT, HIDE_ARTIFACTS],
        Class::HookHidden | Class::HookSensitive => &[ROOTKIT, MODULE],
        Class::ModuleHidden => &[ROOTKIT, MODULE, HIDE_ARTIFACTS],
        Class::PrivilegesGained => &[ROOTKIT, EXPLOITATION],
        Class::FilterLifted => &[ROOTKIT, DISABLE_TOOLS],
        Class::ProtectionLifted => &[DISABLE_TOOLS],
        Class::ProgramRedirected => &[EXPLOITATION],
        Class::TaintCleared => &[MODULE, REMOVE_INDICATORS],
        Class::ExecutableHidden | Class::ExecutableWritable => &[ROOTKIT, REFLECTIVE_LOADING],
        Class::LinuxStalled | Class::LinuxPanicked => &[],
    }
}
