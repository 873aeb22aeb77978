//! What the monitor needs from a profile: the symbols, members and constants of the walks that every check uses, and
//! those that each check, and each list without a check, declares.

use crate::{cpus, mounts, owner, registry, rings, sockets};

/// Whether a kernel may lack an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Without it, no profile is made.
    Required,
    /// Without it, the check that needs it is limited or does not run.
    Optional,
}

use Need::{Optional, Required};

/// Structure, member path, need. The profile also contains the size of the structure.
pub type Member = (&'static str, &'static str, Need);

/// What a part of the monitor needs from a profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wants {
    /// The required symbols. A profile contains all other symbols, too.
    pub symbols: &'static [&'static str],
    /// The members.
    pub members: &'static [Member],
    /// The enumeration constants.
    pub constants: &'static [(&'static str, Need)],
}

/// What address translation, the bounds of the image and the walks over Linux's lists need.
const COMMON: Wants = Wants {
    symbols: &["_text", "_end", "_etext", "__start_rodata", "__end_rodata", "init_top_pgt"],
    members: &[
        ("list_head", "next", Required),
        ("list_head", "prev", Required),
        ("hlist_head", "first", Required),
        ("hlist_node", "next", Required),
        ("hlist_node", "pprev", Required),
        ("rb_node", "__rb_parent_color", Optional),
        ("rb_node", "rb_left", Optional),
        ("rb_node", "rb_right", Optional),
    ],
    constants: &[],
};

fn all() -> impl Iterator<Item = &'static Wants> {
    let checks = registry::ABOUT.iter().flat_map(|about| about.wants);
    let lists = [
        &cpus::WANTS,
        &mounts::WANTS,
        &owner::WANTS,
        &rings::WANTS,
        &sockets::WANTS,
        &sockets::HANDLERS,
    ];
    [&COMMON].into_iter().chain(lists).chain(checks)
}

/// The required symbols.
pub fn symbols() -> impl Iterator<Item = &'static str> {
    all().flat_map(|wants| wants.symbols).copied()
}

/// The members; one that several checks need comes more than once.
pub fn members() -> impl Iterator<Item = Member> {
    all().flat_map(|wants| wants.members).copied()
}

/// The enumeration constants; one that several checks need comes more than once.
pub fn constants() -> impl Iterator<Item = (&'static str, Need)> {
    all().flat_map(|wants| wants.constants).copied()
}
