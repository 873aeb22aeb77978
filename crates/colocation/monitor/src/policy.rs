//! What the monitor does about each class of findings. It is fixed when the monitor is loaded.

use crate::class::Class;
use crate::profile::ProfileError;

/// What is done about a finding, besides the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Report,
    /// The repair that the check offers.
    Repair,
    /// The repair, or a restart if there is none or it fails.
    RepairOrRestart,
    /// A restart of the machine.
    Restart,
    /// The repair, if the class has one; then the end of the process, by Linux itself.
    Stop,
    /// The hooks of the module that is to blame are taken out.
    Disarm,
}

impl Action {
    /// Every action, in the order of their numbers.
    pub const ALL: &[Self] = &[
        Self::Report,
        Self::Repair,
        Self::RepairOrRestart,
        Self::Restart,
        Self::Stop,
        Self::Disarm,
    ];

    /// The name in a policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Repair => "repair",
            Self::RepairOrRestart => "repair-or-restart",
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Disarm => "disarm",
        }
    }

    /// The action called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }

    /// Whether it is one that writes to Linux's memory.
    pub fn writes(self) -> bool {
        matches!(self, Self::Repair | Self::RepairOrRestart | Self::Stop | Self::Disarm)
    }

    /// Whether it can be done about findings of `class`.
    ///
    /// # Errors
    ///
    /// Why not.
    fn check(self, class: Class) -> Result<(), Unsuitable> {
        match self {
            Self::Repair | Self::RepairOrRestart if !class.is_repairable() => {
                Err(Unsuitable::NoRepair)
            }
            Self::Stop if !class.is_about_process() => Err(Unsuitable::NoProcess),
            Self::Disarm if !class.blames_module() => Err(Unsuitable::NoModule),
            _ => Ok(()),
        }
    }
}

/// Why an action cannot be done about a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsuitable {
    /// The class has no repair.
    NoRepair,
    /// The class is not about processes.
    NoProcess,
    /// The class blames no module.
    NoModule,
}

/// Why a module or BPF program cannot be allowed to do what is sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAllowed {
    /// Linux has no module with such a name.
    NoName,
    /// There are [`Policy::MAX_ALLOWED`] already.
    TooMany,
}

/// Bytes of a module's name, with a zero at the end (`MODULE_NAME_LEN` in Linux's `module.h`).
const NAME_BYTES: usize = 56;
type Name = [u8; NAME_BYTES];

/// An action for each class, and the modules that may hook sensitive functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    actions: [Action; Class::ALL.len()],
    /// Names, then zeros.
    allowed: [Name; Self::MAX_ALLOWED],
}

/// The first bytes of an encoded policy.
const MAGIC: [u8; 8] = *b"KYOPOL\x1a\x02";
/// Bytes of magic and actions.
const ACTIONS_BYTES: usize = 64;

impl Policy {
    /// Maximum number of modules that may hook sensitive functions.
    pub const MAX_ALLOWED: usize = 8;

    /// Bytes of an encoded policy.
    pub const BYTES: usize = ACTIONS_BYTES + Self::MAX_ALLOWED * NAME_BYTES;

    /// Reports only, about every module.
    pub const REPORT: Self = Self {
        actions: [Action::Report; Class::ALL.len()],
        allowed: [[0; NAME_BYTES]; Self::MAX_ALLOWED],
    };

    /// The action for `class`.
    pub fn of(&self, class: Class) -> Action {
        self.actions[class as usize]
    }

    /// Allows the module called `name`, as in Linux's list of modules, to hook sensitive functions, or the BPF program
    /// whose code has this name to call sensitive helpers.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] if there is no such name, or no room for it.
    pub fn allow(&mut self, name: &str) -> Result<(), NotAllowed> {
        let new = encoded(name).ok_or(NotAllowed::NoName)?;
        let place = self.allowed.iter_mut().find(|old| **old == new || old[0] == 0);
        *place.ok_or(NotAllowed::TooMany)? = new;
        Ok(())
    }

    /// The modules that may hook sensitive functions.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().filter_map(decoded)
    }

    /// Sets the action for `class`.
    ///
    /// # Errors
    ///
    /// [`Unsuitable`] if the class has no such action.
    pub fn set(&mut self, class: Class, action: Action) -> Result<(), Unsuitable> {
        action.check(class)?;
        self.actions[class as usize] = action;
        Ok(())
    }

    /// Whether it writes to Linux's memory because of findings of some class.
    pub fn writes(&self) -> bool {
        self.actions.iter().any(|action| action.writes())
    }

    /// The policy as it stands before the profile in the monitor's data: magic, a byte for each class, zeros, names.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        const { assert!(MAGIC.len() + Class::ALL.len() <= ACTIONS_BYTES) };
        let mut bytes = [0; Self::BYTES];
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        for (to, action) in bytes[MAGIC.len()..].iter_mut().zip(&self.actions) {
            *to = *action as u8;
        }
        bytes[ACTIONS_BYTES..].copy_from_slice(self.allowed.as_flattened());
        bytes
    }

    /// The policy at the beginning of the monitor's data, and the rest.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Malformed`] if there is none.
    pub fn decode(data: &[u8]) -> Result<(Self, &[u8]), ProfileError> {
        const NONE: ProfileError = ProfileError::Malformed("it does not begin with a policy");
        let (bytes, rest) = data.split_first_chunk::<{ Self::BYTES }>().ok_or(NONE)?;
        let codes = bytes.strip_prefix(&MAGIC).ok_or(NONE)?;
        let mut policy = Self::REPORT;
        for (class, code) in Class::ALL.iter().zip(codes) {
            let action = Action::ALL.get(usize::from(*code)).ok_or(NONE)?;
            policy.set(*class, *action).map_err(|_| NONE)?;
        }
        let (names, _) = bytes[ACTIONS_BYTES..].as_chunks::<NAME_BYTES>();
        for name in names.iter().filter(|name| name[0] != 0) {
            let name = decoded(name).ok_or(NONE)?;
            policy.allow(name).map_err(|_| NONE)?;
        }
        // There is one encoding of each policy.
        if policy.encode() != *bytes {
            return Err(NONE);
        }
        Ok((policy, rest))
    }
}

/// The name of a module or BPF program in the bytes of a policy; `None` if none has such a name.
fn encoded(name: &str) -> Option<Name> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let mut bytes = [0; NAME_BYTES];
    let fits = (1..NAME_BYTES).contains(&name.len()) && name.as_bytes().iter().all(is_of_name);
    bytes.get_mut(..name.len()).filter(|_| fits)?.copy_from_slice(name.as_bytes());
    Some(bytes)
}

/// The name in bytes that [`encoded`] has made; `None` if there is none.
fn decoded(bytes: &Name) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    core::str::from_utf8(&bytes[..end]).ok().filter(|name| !name.is_empty())
}

impl Default for Policy {
    /// Repairs where a class has a repair, and never restarts.
    fn default() -> Self {
        let mut policy = Self::REPORT;
        for class in Class::ALL.iter().filter(|class| class.is_repairable()) {
            policy.actions[*class as usize] = Action::Repair;
        }
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn a_policy_is_read_as_written() {
        let mut policy = Policy::default();
        assert_eq!(policy.set(Class::HookHidden, Action::Restart), Ok(()));
        assert_eq!(policy.set(Class::TextModified, Action::RepairOrRestart), Ok(()));
        assert_eq!(policy.set(Class::HookHidden, Action::Repair), Err(Unsuitable::NoRepair));
        assert_eq!(policy.set(Class::HookHidden, Action::Stop), Err(Unsuitable::NoProcess));
        assert_eq!(policy.set(Class::FilterLifted, Action::Stop), Ok(()));
        assert_eq!(policy.set(Class::TextModified, Action::Disarm), Err(Unsuitable::NoModule));
        assert_eq!(policy.set(Class::ModuleHidden, Action::Disarm), Ok(()));
        assert_eq!(policy.allow("falcon_lsm"), Ok(()));
        let mut data = policy.encode().to_vec();
        data.push(7);
        assert_eq!(Policy::decode(&data), Ok((policy, &[7][..])));
        assert_eq!(policy.of(Class::HookHidden), Action::Restart);
        assert_eq!(policy.of(Class::HookSensitive), Action::Report);
        assert!(policy.writes() && !Policy::REPORT.writes());
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = Policy::default().encode();
        assert!(Policy::decode(&good[1..]).is_err());
        for (at, value) in [
            (0, b'k'),
            (MAGIC.len(), 4),
            (MAGIC.len(), 5),
            (MAGIC.len(), 6),
            (MAGIC.len() + Class::HookHidden as usize, 1),
            (ACTIONS_BYTES, b'-'),
            (ACTIONS_BYTES + 1, 0xff),
        ] {
            let mut bad = good;
            bad[at] = value;
            assert!(Policy::decode(&bad).is_err(), "{at}");
        }
    }

    #[test]
    fn modules_are_allowed_by_their_names() {
        let mut policy = Policy::default();
        for name in ["", "a-b", "a b", "module\n", "\u{e9}", &"x".repeat(NAME_BYTES)] {
            assert_eq!(policy.allow(name), Err(NotAllowed::NoName), "{name}");
        }
        let names: Vec<_> = (0..Policy::MAX_ALLOWED).map(|n| format!("m{n}")).collect();
        for name in names.iter().chain(&names) {
            assert_eq!(policy.allow(name), Ok(()));
        }
        assert_eq!(policy.allow(&"x".repeat(NAME_BYTES - 1)), Err(NotAllowed::TooMany));
        assert!(policy.allowed().eq(&names));
        assert_eq!(Policy::REPORT.allowed().count(), 0);
    }

    #[test]
    fn names_are_those_of_a_file() {
        for action in Action::ALL {
            assert_eq!(Action::named(action.name()), Some(*action));
        }
        assert_eq!(Action::named("ignore"), None);
    }
}
