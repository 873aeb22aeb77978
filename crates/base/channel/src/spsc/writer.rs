//! The writer.

use super::control::{Control, Sleep};
use super::{follow, limit, room, Window, RECORD, SHORT, SKIP, WORD};
use crate::data::Data;
use crate::error::Error;
use crate::park::{Group, Park};
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::Ordering::{Release, SeqCst};

/// Distance in bytes at which the writer prefetches lines for short records. The reader's processor also prefetches
/// lines and takes them away from the writer's, but not past the end of a page: hence one page. The bytes beyond it
/// avoid an access with the same page offset as an earlier store, which would wait for that store (Intel 64 and IA-32
/// Architectures Optimization Reference Manual, on data prefetching to the L2 cache and on 4-KByte aliasing).
const AHEAD: u64 = 4096 + 512;

/// A writer that found no room waits for this many bytes of it, or a quarter of the ring, if the reader is fast:
/// following the reader from record to record would take away from it, each time, the line that it writes next.
const ROOM: u64 = 16 << 10;

/// Writes records. `C` points to the ring's [`Control`], `D` is its data.
#[derive(Debug)]
pub struct Writer<C, D> {
    control: C,
    window: Window<D>,
    sleep: Sleep,
}

impl<W: Word, C: Deref<Target = Control<W>>, D: Data> Writer<C, D> {
    /// Becomes the ring's writer, and continues at its predecessor's position. There must be no other writer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the size of the data is not a power of two, at least [`super::MIN_BYTES`], or if the
    /// ring's words are not those of a ring of that size.
    pub fn attach<G: Park + ?Sized>(control: C, data: D, group: &G) -> Result<Self, Error> {
        let window = Window::new(&control, data)?;
        let sleep = control.writer.attach(group.me());
        Ok(Self { control, window, sleep })
    }

    /// Maximum bytes of a record.
    pub fn limit(&self) -> usize {
        limit(self.window.capacity as usize)
    }

    /// Sends a record: waits for room until `deadline` in nanoseconds, copies the record, wakes the reader.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline; [`Error::RecordTooLong`]; [`Error::Closed`] or [`Error::PeerDied`] if there
    /// is no room and will be none, unless another reader takes over; [`Error::Corrupt`] if the reader broke the
    /// protocol.
    #[inline]
    pub fn send<G>(&mut self, bytes: &[u8], group: &G, deadline: Option<u64>) -> Result<(), Error>
    where
        G: Group + ?Sized,
    {
        let grant = self.reserve(bytes.len(), group, deadline)?;
        grant.write(0, bytes)?;
        grant.commit(bytes.len(), group);
        Ok(())
    }

    /// Sends a record if there is room; returns whether there was. Fails like [`Writer::try_reserve`].
    #[inline]
    pub fn try_send<G: Park + ?Sized>(&mut self, bytes: &[u8], group: &G) -> Result<bool, Error> {
        let Some(grant) = self.try_reserve(bytes.len())? else {
            return Ok(false);
        };
        grant.write(0, bytes)?;
        grant.commit(bytes.len(), group);
        Ok(true)
    }

    /// Reserves room for a record of up to `len` bytes, to be written in place. Waits and fails like [`Writer::send`].
    #[inline]
    pub fn reserve<G>(
        &mut self,
        len: usize,
        group: &G,
        deadline: Option<u64>,
    ) -> Result<Grant<'_, C, D>, Error>
    where
        G: Group + ?Sized,
    {
        let (skip, need) = self.need(len)?;
        if self.window.corrupt || self.window.free() < need {
            self.find_room(need, group, deadline)?;
        }
        Ok(Grant { writer: self, skip, len })
    }

    /// Reserves room for a record of up to `len` bytes if there is any.
    ///
    /// # Errors
    /// [`Error::RecordTooLong`]; [`Error::Corrupt`] if the reader broke the protocol.
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<Option<Grant<'_, C, D>>, Error> {
        let (skip, need) = self.need(len)?;
        let has = has_room(&mut self.window, &self.control, need)?;
        Ok(has.then_some(Grant { writer: self, skip, len }))
    }

    /// Bytes to skip before a record of `len` bytes, and bytes that skip and record take together.
    fn need(&self, len: usize) -> Result<(u64, u64), Error> {
        if len > self.limit() {
            return Err(Error::RecordTooLong { limit: self.limit() });
        }
        let (_, to_end) = self.window.place(self.window.head);
        let skip = if room(len) > to_end { to_end } else { 0 };
        Ok((skip, skip + room(len)))
    }

    /// Waits for `need` bytes of room, then for more if the reader is fast.
    #[cold]
    fn find_room<G>(&mut self, need: u64, group: &G, deadline: Option<u64>) -> Result<(), Error>
    where
        G: Group + ?Sized,
    {
        let control: &Control<W> = &self.control;
        let window = &mut self.window;
        if !has_room(window, control, need)? {
            let next = || Ok(has_room(window, control, need)?.then_some(()));
            control.writer.wait(&control.reader, group, &mut self.sleep, deadline, next)?;
        }
        let enough = ROOM.min(window.capacity / 4).max(need);
        follow(group, deadline, enough, || {
            has_room(window, control, enough)?;
            Ok(window.free())
        })?;
        Ok(())
    }

    /// Prefetches lines for later records if the reader has released them: as many bytes as the last record took, none
    /// of them past the ring's end.
    #[inline]
    fn look_ahead(&self, bytes: u64) {
        let window = &self.window;
        if window.free() >= AHEAD {
            let (offset, to_end) = window.place(window.head.wrapping_add(AHEAD - bytes));
            window.data.expect_write(offset, bytes.min(to_end) as usize);
        }
    }

    /// Wakes the reader if it sleeps. Needed only after [`Grant::commit_quietly`].
    #[inline]
    pub fn notify<G: Park + ?Sized>(&mut self, group: &G) {
        self.control.reader.wake(group, &mut self.sleep);
    }

    /// Closes the ring: this side sends no more. The reader still receives what was sent.
    pub fn close<G: Park + ?Sized>(mut self, group: &G) {
        self.control.writer.close(group.me().word());
        self.notify(group);
    }
}

/// Whether there are `need` free bytes. Loads the reader's position only if the known free bytes do not suffice.
#[inline]
fn has_room<W: Word, D: Data>(
    window: &mut Window<D>,
    control: &Control<W>,
    need: u64,
) -> Result<bool, Error> {
    if window.corrupt {
        return Err(Error::Corrupt);
    }
    if window.free() >= need {
        return Ok(true);
    }
    let tail = control.reader.position.load(SeqCst);
    // The reader's position only ever comes nearer to the writer's.
    if !tail.is_multiple_of(WORD) || window.head.wrapping_sub(tail) > window.used() {
        return window.refuse();
    }
    window.tail = tail;
    Ok(window.free() >= need)
}

/// Reserved room for one record. Dropping it cancels the reservation.
#[derive(Debug)]
pub struct Grant<'a, C, D> {
    writer: &'a mut Writer<C, D>,
    skip: u64,
    len: usize,
}

impl<'a, W: Word, C: Deref<Target = Control<W>>, D: Data> Grant<'a, C, D> {
    /// Maximum bytes of the record.
    pub fn limit(&self) -> usize {
        self.len
    }

    /// The ring's data and the record's offset in it, a multiple of 8: for writing in place.
    pub fn place(&self) -> (&D, usize) {
        let window = &self.writer.window;
        let (offset, _) = window.place(window.head.wrapping_add(self.skip + WORD));
        (&window.data, offset)
    }

    /// Copies `bytes` into the record from byte `at` on.
    ///
    /// # Errors
    /// [`Error::RecordTooLong`] if they do not all lie inside the record.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        if !crate::data::inside(self.len, at, bytes.len()) {
            return Err(Error::RecordTooLong { limit: self.len });
        }
        let (data, offset) = self.place();
        data.write(offset + at, bytes);
        Ok(())
    }

    /// Sends the record's first `len` bytes, or all if the reservation has fewer, and wakes the reader.
    #[inline]
    pub fn commit<G: Park + ?Sized>(self, len: usize, group: &G) {
        self.publish(len).notify(group);
    }

    /// Like [`Grant::commit`], but does not wake a sleeping reader: call [`Writer::notify`] after the last record.
    #[inline]
    pub fn commit_quietly(self, len: usize) {
        self.publish(len);
    }

    #[inline]
    fn publish(self, len: usize) -> &'a mut Writer<C, D> {
        let len = len.min(self.len);
        let Window { data, head, .. } = &self.writer.window;
        if self.skip > 0 {
            data.store_word(self.writer.window.place(*head).0, SKIP << 32);
        }
        let start = head.wrapping_add(self.skip);
        data.store_word(self.writer.window.place(start).0, RECORD << 32 | len as u64);
        let end = start.wrapping_add(room(len));
        self.writer.window.head = end;
        if len < SHORT {
            self.writer.look_ahead(room(len));
        }
        self.writer.control.writer.position.store(end, Release);
        self.writer
    }
}
