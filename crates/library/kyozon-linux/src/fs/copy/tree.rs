//! Folders with everything in them.

use super::{Copier, Job, Named};
use crate::fs::walk::{Folder, Levels};
use anyhow::Result;
use std::ffi::{CStr, CString};

/// A folder whose copy was made.
#[derive(Clone)]
pub struct Made {
    pub name: CString,
    pub new: CString,
    pub stat: libc::stat,
    pub operand: bool,
    pub follow: bool,
}

impl Made {
    fn job<'x>(&'x self, from: &'x Folder<'x>, to: &'x Folder<'x>) -> Job<'x> {
        let Self { name, new, stat, operand, follow } = self;
        Job { from, name, to, new, stat: *stat, operand: *operand, follow: *follow }
    }
}

/// The folders where a walk is, which begins below `from` and `to`.
fn above<'x>(
    from: &'x Folder<'x>,
    to: &'x Folder<'x>,
    levels: &'x Levels<'x, Option<Made>>,
) -> (&'x Folder<'x>, &'x Folder<'x>) {
    levels.last().map_or((from, to), |at| (&at.folder, at.copy.as_ref().unwrap_or(to)))
}

impl Copier {
    /// Everything in a folder. An entry that cannot be copied is reported and left out.
    pub(super) fn contents(&mut self, from: &Folder<'_>, to: &Folder<'_>) -> Result<()> {
        let mut levels = Levels::empty();
        levels.enter(from.again()?, Some(to.again()?), None)?;
        self.walk(from, to, levels)
    }

    /// One entry, under a new name, with everything in it.
    pub(super) fn entry(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'_>,
        new: &CStr,
        named: Named,
    ) -> Result<()> {
        let Some((source, target, made)) = self.begin(from, name, to, new, named)? else {
            return Ok(());
        };
        let mut levels = Levels::empty();
        if let Err(error) = levels.enter(source, Some(target), Some(made.clone())) {
            return self.attributes(&made.job(from, to)).and(Err(error));
        }
        self.walk(from, to, levels)
    }

    /// Copies what is in the folders of a walk that begins below `from` and `to`.
    fn walk<'a>(
        &mut self,
        from: &Folder<'a>,
        to: &Folder<'a>,
        mut levels: Levels<'a, Option<Made>>,
    ) -> Result<()> {
        loop {
            let step = self.step(from, to, &mut levels);
            if let Ok(false) = step {
                return Ok(());
            }
            if let Err(error) = self.tolerated.pass(step.map(drop), &[from.calls, to.calls]) {
                // A copy that ends early leaves folders that can be used.
                while !matches!(self.leave(from, to, &mut levels), Ok(false)) {}
                return Err(error);
            }
        }
    }

    /// Copies the next entry of a walk. Returns whether there was one.
    fn step<'a>(
        &mut self,
        from: &Folder<'a>,
        to: &Folder<'a>,
        levels: &mut Levels<'a, Option<Made>>,
    ) -> Result<bool> {
        let Some((level, entry)) = levels.next_entry() else { return self.leave(from, to, levels) };
        let copy = level.copy.as_ref().unwrap_or(to);
        let name = &entry.name;
        let begun = self.begin(&level.folder, name, copy, name, Named::ByFolder)?;
        let Some((source, target, made)) = begun else { return Ok(true) };
        if let Err(error) = levels.enter(source, Some(target), Some(made.clone())) {
            let (from, to) = above(from, to, levels);
            return self.attributes(&made.job(from, to)).and(Err(error));
        }
        Ok(true)
    }

    /// Leaves a folder, whose copy gets its attributes. Returns whether there was one.
    fn leave(
        &mut self,
        from: &Folder<'_>,
        to: &Folder<'_>,
        levels: &mut Levels<'_, Option<Made>>,
    ) -> Result<bool> {
        let Some(left) = levels.leave()? else { return Ok(false) };
        if let Some(made) = left.note {
            let (from, to) = above(from, to, levels);
            self.attributes(&made.job(from, to))?;
        }
        Ok(true)
    }
}
