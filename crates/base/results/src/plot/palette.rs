//! What a colour means, in every plot. The colours are those of Okabe and Ito, chosen for readers who see few colours;
//! no plot depends on colour alone.

use crate::row::Row;
use serde::Deserialize;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The cokernel without Linux.
    Alone,
    /// Beside Linux, mode `none`.
    None,
    /// Linux as a guest, mode `vmm`.
    Vmm,
    /// Linux itself: its code, its threads, and its work without this project.
    Linux,
    /// A unikernel in a confined process.
    Process,
    /// A unikernel in a virtual machine.
    Vm,
    /// A unikernel that sends messages.
    Message,
    /// This project's code in a part of a whole.
    Kyozon,
    /// The same on the way back.
    Return,
    /// Linux's code on the way back.
    Resume,
    /// Anything else.
    Other,
}

/// The words in the names of rows and groups that say what is measured.
const WORDS: [(&str, Role); 17] = [
    ("alone", Role::Alone),
    ("none", Role::None),
    ("watched", Role::None),
    ("cokernel", Role::None),
    ("vmm", Role::Vmm),
    ("guest", Role::Vmm),
    ("threads", Role::Linux),
    ("bare", Role::Linux),
    ("before", Role::Linux),
    ("after", Role::Linux),
    ("without", Role::Linux),
    ("tcp", Role::Linux),
    ("unix", Role::Linux),
    ("pipe", Role::Linux),
    ("process", Role::Process),
    ("vm", Role::Vm),
    ("vm-message", Role::Message),
];

impl Role {
    /// The first role that the row's name has a word for, or else its group.
    pub(super) fn of(row: &Row) -> Self {
        if row.group.as_deref() == Some("kvm") {
            return Self::Vm;
        }
        let texts = [Some(&row.name), row.group.as_ref()];
        let words = texts.into_iter().flatten().flat_map(|text| text.split([' ', ',', ':']));
        let role = |word: &str| WORDS.iter().find(|(known, _)| *known == word);
        words.filter_map(role).map(|(_, role)| *role).next().unwrap_or(Self::Other)
    }

    pub(super) fn colour(self) -> &'static str {
        match self {
            Self::Alone => "#999999",
            Self::None => "#e69f00",
            Self::Vmm => "#0072b2",
            Self::Linux => "#009e73",
            Self::Process => "#cc79a7",
            Self::Vm => "#d55e00",
            Self::Message => "#56b4e9",
            Self::Kyozon => "#f0e442",
            Self::Return => "#faf5b4",
            Self::Resume => "#8fd3bf",
            Self::Other => "#7b8a9c",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_roles() {
        for (name, group, expected) in [
            ("to the handler", "none 6.12 IO-APIC", Role::None),
            ("vm : threads", "ring, 1 MiB", Role::Vm),
            ("vm-message : vm", "8192 numbers", Role::Message),
            ("CPU-bound, bare", "6.1", Role::Linux),
            ("thread", "kvm", Role::Vm),
            ("boot", "6.1", Role::Other),
        ] {
            let row = Row::from_samples(name, "us", &[1.0]).unwrap().group(group);
            assert_eq!(Role::of(&row), expected, "{group}/{name}");
        }
    }
}
