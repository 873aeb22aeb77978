//! The table: shards, each a hash table behind a lock. Clients cannot choose keys that collide, as the hash (SipHash,
//! J.-P. Aumasson and D. J. Bernstein, 2012) has a secret key.
//!
//! A worker that dies in a shard may leave it inconsistent. The shard is not used again: operations on it return
//! [`TableError::Lost`] until [`Table::clear`], and its memory is never freed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::sync::atomic::{AtomicUsize, Ordering};
use hashbrown::hash_table::{Entry as Place, HashTable};
use kyozon_channel::border::{LockError, Mutex, MutexGuard, TrustedGroup};
use siphasher::sip::SipHasher13;

/// Number of shards: a power of two, several for each peer that a group can have.
const SHARDS: usize = 256;
/// Bytes of an entry besides its key and value: its slot in a half-empty table, and the heap's overhead.
const ENTRY: usize = 128;

/// Why an operation changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// A worker died in the shard.
    Lost,
    /// The table's limit is reached, or the heap is full.
    Full,
    /// The value is no 64-bit integer.
    NotANumber,
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

/// Entries, and their total bytes.
struct Shard {
    entries: HashTable<Entry>,
    bytes: usize,
}

/// The table. Operations take the lock of one shard, except [`Table::count`] and [`Table::clear`].
pub struct Table {
    shards: Box<[Mutex<Shard>]>,
    keys: [u64; 2],
    limit: usize,
    used: AtomicUsize,
}

fn copy(bytes: &[u8]) -> Result<Box<[u8]>, TableError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| TableError::Full)?;
    copy.extend_from_slice(bytes);
    Ok(copy.into_boxed_slice())
}

impl Table {
    /// Makes an empty table of at most `limit` bytes. `keys` is the secret key of the hash.
    pub fn new(limit: usize, keys: [u64; 2]) -> Self {
        let shard = || Mutex::new(Shard { entries: HashTable::new(), bytes: 0 });
        let shards = (0..SHARDS).map(|_| shard()).collect();
        Self { shards, keys, limit, used: AtomicUsize::new(0) }
    }

    /// Maximum bytes of the table.
    pub fn limit(&self) -> usize {
        self.limit
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
    ) -> Result<MutexGuard<'a, Shard, G>, TableError> {
        // The hash table of a shard uses the lowest and the highest bits.
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        shard.lock(group, None).map_err(|_| TableError::Lost)
    }

    /// Reserves bytes of the table's limit.
    fn reserve(&self, bytes: usize) -> Result<(), TableError> {
        let after = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if after > self.limit {
            self.release(bytes);
            return Err(TableError::Full);
        }
        Ok(())
    }

    /// Returns reserved bytes.
    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Calls `with` with the value of a key, or with `None`.
    ///
    /// # Errors
    ///
    /// [`TableError::Lost`].
    pub fn get<G: TrustedGroup, R>(
        &self,
        key: &[u8],
        group: &G,
        with: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, TableError> {
        let hash = self.hash(key);
        let shard = self.lock(hash, group)?;
        let found = shard.entries.find(hash, |entry| *entry.key == *key);
        Ok(with(found.map(|entry| &*entry.value)))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// [`TableError::Lost`], [`TableError::Full`].
    pub fn set<G: TrustedGroup>(
        &self,
        key: &[u8],
        value: &[u8],
        group: &G,
    ) -> Result<(), TableError> {
        let entry = Entry { key: copy(key)?, value: copy(value)? };
        let bytes = entry.bytes();
        // Reserved as for a new key; the bytes of a replaced entry are released afterwards.
        self.reserve(bytes)?;
        let before = self.replace(entry, group).inspect_err(|_| self.release(bytes))?;
        if let Some(before) = before {
            self.release(before.bytes());
        }
        Ok(())
    }

    /// Inserts an entry. Returns the one that it replaces.
    fn replace<G: TrustedGroup>(
        &self,
        entry: Entry,
        group: &G,
    ) -> Result<Option<Entry>, TableError> {
        let hash = self.hash(&entry.key);
        let mut guard = self.lock(hash, group)?;
        let Shard { entries, bytes } = &mut *guard;
        if let Some(there) = entries.find_mut(hash, |other| other.key == entry.key) {
            *bytes = *bytes - there.bytes() + entry.bytes();
            return Ok(Some(core::mem::replace(there, entry)));
        }
        entries.try_reserve(1, |entry| self.hash(&entry.key)).map_err(|_| TableError::Full)?;
        *bytes += entry.bytes();
        entries.insert_unique(hash, entry, |entry| self.hash(&entry.key));
        Ok(None)
    }

    /// Deletes a key. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// [`TableError::Lost`].
    pub fn delete<G: TrustedGroup>(&self, key: &[u8], group: &G) -> Result<bool, TableError> {
        let hash = self.hash(key);
        let mut guard = self.lock(hash, group)?;
        let Shard { entries, bytes } = &mut *guard;
        let Ok(found) = entries.find_entry(hash, |entry| *entry.key == *key) else {
            return Ok(false);
        };
        let (entry, _) = found.remove();
        *bytes -= entry.bytes();
        drop(guard);
        self.release(entry.bytes());
        Ok(true)
    }

    /// Adds 1 to the number that is a key's value, which is 0 if there is none. Returns the result.
    ///
    /// # Errors
    ///
    /// Any [`TableError`].
    pub fn increment<G: TrustedGroup>(&self, key: &[u8], group: &G) -> Result<i64, TableError> {
        let hash = self.hash(key);
        let key = copy(key)?;
        let mut guard = self.lock(hash, group)?;
        let Shard { entries, bytes } = &mut *guard;
        let rehash = |entry: &Entry| self.hash(&entry.key);
        entries.try_reserve(1, rehash).map_err(|_| TableError::Full)?;
        let place = entries.entry(hash, |entry| entry.key == key, rehash);
        let (value, before) = match &place {
            Place::Vacant(_) => (0, 0),
            Place::Occupied(there) => (number(&there.get().value)?, there.get().bytes()),
        };
        let value = value.checked_add(1).ok_or(TableError::Overflow)?;
        let entry = Entry { key, value: copy(alloc::format!("{value}").as_bytes())? };
        let after = entry.bytes();
        self.reserve(after)?;
        self.release(before);
        *bytes = *bytes - before + after;
        match place {
            Place::Vacant(vacant) => drop(vacant.insert(entry)),
            Place::Occupied(mut there) => *there.get_mut() = entry,
        }
        Ok(value)
    }

    /// The number of keys. Shards are counted one after the other, so the sum may never have been true.
    ///
    /// # Errors
    ///
    /// [`TableError::Lost`].
    pub fn count<G: TrustedGroup>(&self, group: &G) -> Result<usize, TableError> {
        let mut count = 0;
        for shard in &self.shards {
            count += shard.lock(group, None).map_err(|_| TableError::Lost)?.entries.len();
        }
        Ok(count)
    }

    /// Deletes all keys. Lost shards can be used again.
    ///
    /// # Errors
    ///
    /// [`TableError::Lost`] if a shard's lock cannot be taken.
    pub fn clear<G: TrustedGroup>(&self, group: &G) -> Result<(), TableError> {
        for shard in &self.shards {
            let empty = Shard { entries: HashTable::new(), bytes: 0 };
            match shard.lock(group, None) {
                Ok(mut guard) => {
                    let before = core::mem::replace(&mut *guard, empty);
                    drop(guard);
                    self.release(before.bytes);
                }
                // The lost shard's count of bytes may be wrong, so they stay reserved.
                Err(LockError::Poisoned(lost)) => drop(lost.replace(empty)),
                Err(LockError::Failed(_)) => return Err(TableError::Lost),
            }
        }
        Ok(())
    }
}

/// Parses a value in its canonical form: no plus sign, no leading zeros.
fn number(value: &[u8]) -> Result<i64, TableError> {
    let text = core::str::from_utf8(value).map_err(|_| TableError::NotANumber)?;
    let number: i64 = text.parse().map_err(|_| TableError::NotANumber)?;
    (alloc::format!("{number}") == text).then_some(number).ok_or(TableError::NotANumber)
}

#[cfg(test)]
mod tests;
