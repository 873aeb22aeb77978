//! The kernel's executable memory, for people.

use super::{read_copies, MappingCheck, VSYSCALL};
use crate::check::Make;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::{Kind, OwnerIndex};
use crate::profile::ProfileError;
use crate::walk::scan_mappings;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Maximum number of pieces, and of the lowest tables: tables that lead to each other map any number of pages.
const MAX_PIECES: usize = 1 << 16;
const MAX_PARTS: usize = 1 << 18;

/// A piece of memory that the kernel can execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Address of its first byte.
    pub start: u64,
    /// Address of the byte behind it.
    pub end: u64,
    /// Whether the kernel can write it as well.
    pub is_writable: bool,
    /// Whose code it is; `None` if nobody's.
    pub owner: Option<String>,
}

/// All pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// By address.
    pub pieces: Vec<Piece>,
    /// Whether the page tables could be read to their end.
    pub is_complete: bool,
}

/// Reads the kernel's page tables once.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that the walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Pieces, ProfileError> {
    let mut check = MappingCheck::make(kernel.profile, 0)?;
    let mut all = Pieces::default();
    let Some(mut index) = check.owners.take() else { return Ok(all) };
    while !index.advance(kernel) {}
    let copies = read_copies(kernel, &check.pointers);
    let (mut at, mut parts) = (Some(0), 0);
    while let Some(from) = at.filter(|_| all.pieces.len() < MAX_PIECES && parts < MAX_PARTS) {
        parts += 1;
        at = scan_mappings(kernel, from, &mut |page| {
            if !page.is_executable || !page.is_known || page.start == VSYSCALL && page.is_user {
                return;
            }
            let end = page.start.saturating_add(page.bytes);
            let is_in = |range: &Range<u64>| range.start <= page.start && end <= range.end;
            let owner = match &copies {
                _ if is_in(&check.text) => Some("the kernel".into()),
                [Some(real_mode), _] if is_in(real_mode) => Some("the start of CPUs".into()),
                [_, Some(page)] if is_in(page) => Some("calls of Hyper-V".into()),
                _ => owner(kernel, &index, page.start, end),
            };
            match all.pieces.last_mut() {
                Some(last)
                    if (last.end, last.is_writable, &last.owner)
                        == (page.start, page.is_writable, &owner) =>
                {
                    last.end = end;
                }
                _ => all.pieces.push(Piece {
                    start: page.start,
                    end,
                    is_writable: page.is_writable,
                    owner,
                }),
            }
        });
    }
    // Whoever shows other tables than those in use shows fewer.
    let of_kernel = |piece: &&Piece| check.text.contains(&piece.start);
    let shown: u64 = all.pieces.iter().filter(of_kernel).map(|piece| piece.end - piece.start).sum();
    all.is_complete = at.is_none() && shown >= check.text.end - check.text.start;
    Ok(all)
}

/// The owner of the page from `start` to `end`.
fn owner<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: &OwnerIndex,
    start: u64,
    end: u64,
) -> Option<String> {
    match index.code_or_pack(start).map(|code| code.kind) {
        // Programs share pages.
        Some(Kind::Program | Kind::Pack) => Some("BPF".into()),
        Some(_) => index.name(kernel, start),
        None => index.touches(start, end).then(|| "listed code in a part of it".into()),
    }
}
