//! Folders in folders, as deep as they are: neither the stack nor the limit of descriptors bounds a walk.

use super::Folder;
use anyhow::Result;
use liblinux::calls::Entry;
use std::vec::IntoIter;

/// Levels whose folders stay open. Those above are opened again by way of `..` when the walk comes back to them.
const OPEN: usize = 100;

/// A folder whose entries are being visited.
pub struct Level<'a, T> {
    /// The folder.
    pub folder: Folder<'a>,
    /// Its copy, if it is being copied.
    pub copy: Option<Folder<'a>>,
    /// What the walk notes about it.
    pub note: T,
    entries: IntoIter<Entry>,
}

/// The folders that lead to where a walk is.
pub struct Levels<'a, T>(Vec<Level<'a, T>>);

impl<'a, T> Level<'a, T> {
    fn folders(&mut self) -> impl Iterator<Item = &mut Folder<'a>> {
        [Some(&mut self.folder), self.copy.as_mut()].into_iter().flatten()
    }
}

impl<'a, T> Levels<'a, T> {
    /// A walk that has not begun.
    pub fn empty() -> Self {
        Self(Vec::new())
    }

    /// Goes into a folder.
    pub fn enter(&mut self, folder: Folder<'a>, copy: Option<Folder<'a>>, note: T) -> Result<()> {
        let entries = folder.entries()?.into_iter();
        if let Some(number) = self.0.len().checked_sub(OPEN) {
            self.0[number].folders().try_for_each(Folder::suspend)?;
        }
        self.0.push(Level { folder, copy, note, entries });
        Ok(())
    }

    /// The folder where the walk is.
    pub fn last(&self) -> Option<&Level<'a, T>> {
        self.0.last()
    }

    /// The folder where the walk is, and its next entry.
    pub fn next_entry(&mut self) -> Option<(&Level<'a, T>, Entry)> {
        let level = self.0.last_mut()?;
        let entry = level.entries.next()?;
        Some((level, entry))
    }

    /// Leaves a folder. After an error the walk has ended.
    pub fn leave(&mut self) -> Result<Option<Level<'a, T>>> {
        let Some(mut left) = self.0.pop() else { return Ok(None) };
        if let Some(above) = self.0.last_mut() {
            let resumed = {
                let mut pairs = above.folders().zip(left.folders());
                pairs.try_for_each(|(above, inside)| above.resume(inside))
            };
            if let Err(error) = resumed {
                self.0.clear();
                return Err(error);
            }
        }
        Ok(Some(left))
    }
}

#[cfg(test)]
mod tests;
