//! The table: shards, each a hash table behind a lock. Keys that clients choose do not meet in one place, as the hash
//! (SipHash, J.-P. Aumasson and D. J. Bernstein, 2012) has a key of its own.
//!
//! A worker that dies in a shard may leave it half done. Nobody looks at it again: it says that it is lost until
//! [`Table::clear`], and its memory is not given back.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::sync::atomic::{AtomicUsize, Ordering};
use hashbrown::hash_table::{Entry as Place, HashTable};
use kyozon_channel::border::{LockError, Mutex, MutexGuard, TrustedGroup};
use siphasher::sip::SipHasher13;

/// Shards: a power of two, some for each peer that a group can have.
const SHARDS: usize = 256;
/// Bytes that an entry takes besides its key and value: its place in a table that is half empty, and the heap's own.
const ENTRY: usize = 128;

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody died in the shard.
    Lost,
    /// The table would have more bytes than it may, or the heap has no more.
    Full,
    /// The value is no whole number of 64 bits.
    NoNumber,
    /// The number has no successor.
    Overflow,
}

struct Entry {
    key: Box<[u8]>,
    value: Box<[u8]>,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.key.len() + self.value.len() + ENTRY
    }
}

/// Some of the entries, and their bytes.
struct Shard {
    entries: HashTable<Entry>,
    bytes: usize,
}

/// The table. What it does takes the lock of one shard, but for [`Table::count`] and [`Table::clear`].
pub struct Table {
    shards: Box<[Mutex<Shard>]>,
    keys: [u64; 2],
    most: usize,
    used: AtomicUsize,
}

fn copy(bytes: &[u8]) -> Result<Box<[u8]>, Refused> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Refused::Full)?;
    copy.extend_from_slice(bytes);
    Ok(copy.into_boxed_slice())
}

impl Table {
    /// An empty table of at most so many bytes, whose hash has this key.
    pub fn new(most: usize, keys: [u64; 2]) -> Self {
        let shard = || Mutex::new(Shard { entries: HashTable::new(), bytes: 0 });
        let shards = (0..SHARDS).map(|_| shard()).collect();
        Self { shards, keys, most, used: AtomicUsize::new(0) }
    }

    /// Bytes that it may have.
    pub fn most(&self) -> usize {
        self.most
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.keys[0], self.keys[1]);
        hasher.write(key);
        hasher.finish()
    }

    fn lock<'a, G: TrustedGroup>(
        &'a self,
        hash: u64,
        group: &'a G,
    ) -> Result<MutexGuard<'a, Shard, G>, Refused> {
        // The lowest and the highest bits say where it lies in the shard.
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        shard.lock(group, None).map_err(|_| Refused::Lost)
    }

    /// Takes bytes from those that are left.
    fn take(&self, bytes: usize) -> Result<(), Refused> {
        let after = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if after > self.most {
            self.give(bytes);
            return Err(Refused::Full);
        }
        Ok(())
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Does something with the value of a key, or with `None`.
    pub fn get<G: TrustedGroup, R>(
        &self,
        key: &[u8],
        group: &G,
        with: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, Refused> {
        let hash = self.hash(key);
        let shard = self.lock(hash, group)?;
        let found = shard.entries.find(hash, |entry| *entry.key == *key);
        Ok(with(found.map(|entry| &*entry.value)))
    }

    /// Sets the value of a key.
    pub fn set<G: TrustedGroup>(&self, key: &[u8], value: &[u8], group: &G) -> Result<(), Refused> {
        let entry = Entry { key: copy(key)?, value: copy(value)? };
        let bytes = entry.bytes();
        // As if it were another key: what it replaces is given back.
        self.take(bytes)?;
        let before = self.replace(entry, group).inspect_err(|_| self.give(bytes))?;
        if let Some(before) = before {
            self.give(before.bytes());
        }
        Ok(())
    }

    /// Puts an entry in the place of the one that has its key, which is returned.
    fn replace<G: TrustedGroup>(&self, entry: Entry, group: &G) -> Result<Option<Entry>, Refused> {
        let hash = self.hash(&entry.key);
        let mut guard = self.lock(hash, group)?;
        let Shard { entries, bytes } = &mut *guard;
        if let Some(there) = entries.find_mut(hash, |other| other.key == entry.key) {
            *bytes = *bytes - there.bytes() + entry.bytes();
            return Ok(Some(core::mem::replace(there, entry)));
        }
        entries.try_reserve(1, |entry| self.hash(&entry.key)).map_err(|_| Refused::Full)?;
        *bytes += entry.bytes();
        entries.insert_unique(hash, entry, |entry| self.hash(&entry.key));
        Ok(None)
    }

    /// Deletes a key; whether it was there.
    pub fn delete<G: TrustedGroup>(&self, key: &[u8], group: &G) -> Result<bool, Refused> {
        let hash = self.hash(key);
        let mut guard = self.lock(hash, group)?;
        let Shard { entries, bytes } = &mut *guard;
        let Ok(found) = entries.find_entry(hash, |entry| *entry.key == *key) else {
            return Ok(false);
        };
        let (entry, _) = found.remove();
        *bytes -= entry.bytes();
        drop(guard);
        self.give(entry.bytes());
        Ok(true)
    }

    /// Adds 1 to the number that a key has as value, 0 where it has none; the number then.
    pub fn increment<G: TrustedGroup>(&self, key: &[u8], group: &G) -> Result<i64, Refused> {
        let hash = self.hash(key);
        let key = copy(key)?;
        let mut guard = self.lock(hash, group)?;
        let Shard { entries, bytes } = &mut *guard;
        let rehash = |entry: &Entry| self.hash(&entry.key);
        entries.try_reserve(1, rehash).map_err(|_| Refused::Full)?;
        let place = entries.entry(hash, |entry| entry.key == key, rehash);
        let (value, before) = match &place {
            Place::Vacant(_) => (0, 0),
            Place::Occupied(there) => (number(&there.get().value)?, there.get().bytes()),
        };
        let value = value.checked_add(1).ok_or(Refused::Overflow)?;
        let entry = Entry { key, value: copy(alloc::format!("{value}").as_bytes())? };
        let after = entry.bytes();
        self.take(after)?;
        self.give(before);
        *bytes = *bytes - before + after;
        match place {
            Place::Vacant(vacant) => drop(vacant.insert(entry)),
            Place::Occupied(mut there) => *there.get_mut() = entry,
        }
        Ok(value)
    }

    /// How many keys there are, at moments that follow each other.
    pub fn count<G: TrustedGroup>(&self, group: &G) -> Result<usize, Refused> {
        let mut count = 0;
        for shard in &self.shards {
            count += shard.lock(group, None).map_err(|_| Refused::Lost)?.entries.len();
        }
        Ok(count)
    }

    /// Deletes all keys. Shards that were lost are there again.
    pub fn clear<G: TrustedGroup>(&self, group: &G) -> Result<(), Refused> {
        for shard in &self.shards {
            let empty = Shard { entries: HashTable::new(), bytes: 0 };
            match shard.lock(group, None) {
                Ok(mut guard) => {
                    let before = core::mem::replace(&mut *guard, empty);
                    drop(guard);
                    self.give(before.bytes);
                }
                Err(LockError::Poisoned(mut guard)) => {
                    // What it says of its memory may be wrong, so that stays used.
                    core::mem::forget(core::mem::replace(&mut *guard, empty));
                    guard.clear_poison();
                }
                Err(LockError::Failed(_)) => return Err(Refused::Lost),
            }
        }
        Ok(())
    }
}

/// A value as a number, as it would be written: without a plus, without zeros before it.
fn number(value: &[u8]) -> Result<i64, Refused> {
    let text = core::str::from_utf8(value).map_err(|_| Refused::NoNumber)?;
    let number: i64 = text.parse().map_err(|_| Refused::NoNumber)?;
    (alloc::format!("{number}") == text).then_some(number).ok_or(Refused::NoNumber)
}

#[cfg(test)]
mod tests;
