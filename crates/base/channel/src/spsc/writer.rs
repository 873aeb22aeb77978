//! The side that writes.

use super::control::{Control, Sleep};
use super::{follow, limit, room, Window, RECORD, SHORT, SKIP, WORD};
use crate::data::Data;
use crate::error::Error;
use crate::park::{Group, Park};
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::Ordering::{Release, SeqCst};

/// So far ahead the lines of short records are fetched. The reader's processor fetches lines before they are read, too,
/// and takes them away from here, but not past the end of a page; and some bytes more, as an access with the page offset
/// of a store before it waits for that (Intel 64 and IA-32 Architectures Optimization Reference Manual, on data
/// prefetching to the L2 cache and on 4-KByte aliasing).
const AHEAD: u64 = 4096 + 512;

/// Who found no room waits for so much of it, or a quarter of the ring, where the reader is fast: to follow it from record
/// to record would take from it, each time, the line that it writes next.
const ROOM: u64 = 16 << 10;

/// Writes records. `C` leads to the ring's [`Control`], `D` is its data.
#[derive(Debug)]
pub struct Writer<C, D> {
    control: C,
    window: Window<D>,
    sleep: Sleep,
}

impl<W: Word, C: Deref<Target = Control<W>>, D: Data> Writer<C, D> {
    /// Becomes the ring's writer, and goes on where one before was. There must be no other.
    ///
    /// Fails with [`Error::Corrupt`] where the data is not a power of two bytes, at least [`super::MIN_BYTES`], or the
    /// ring's words are not those of a ring of that size.
    pub fn attach<G: Park + ?Sized>(control: C, data: D, group: &G) -> Result<Self, Error> {
        let window = Window::new(&control, data)?;
        let sleep = control.writer.attach(group.me());
        Ok(Self { control, window, sleep })
    }

    /// Most bytes of a record.
    pub fn limit(&self) -> usize {
        limit(self.window.capacity as usize)
    }

    /// Sends a record: waits for room, copies, wakes the reader.
    ///
    /// Fails with [`Error::TimedOut`]; with [`Error::RecordTooLong`]; with [`Error::Closed`] or [`Error::PeerDied`] where
    /// there is no room and will be none, unless another reader takes over; with [`Error::Corrupt`].
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

    /// Sends a record if there is room; whether there was.
    #[inline]
    pub fn try_send<G: Park + ?Sized>(&mut self, bytes: &[u8], group: &G) -> Result<bool, Error> {
        let Some(grant) = self.try_reserve(bytes.len())? else {
            return Ok(false);
        };
        grant.write(0, bytes)?;
        grant.commit(bytes.len(), group);
        Ok(true)
    }

    /// Room for a record of up to `len` bytes, to be written in place. Waits for it, and fails, as [`Writer::send`].
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

    /// Room for a record of up to `len` bytes if there is.
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Result<Option<Grant<'_, C, D>>, Error> {
        let (skip, need) = self.need(len)?;
        let has = has_room(&mut self.window, &self.control, need)?;
        Ok(has.then_some(Grant { writer: self, skip, len }))
    }

    /// Bytes to skip before a record of `len` bytes, and bytes that both take.
    fn need(&self, len: usize) -> Result<(u64, u64), Error> {
        if len > self.limit() {
            return Err(Error::RecordTooLong { limit: self.limit() });
        }
        let (_, to_end) = self.window.place(self.window.head);
        let skip = if room(len) > to_end { to_end } else { 0 };
        Ok((skip, skip + room(len)))
    }

    /// Waits for room; then for more of it.
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

    /// Has lines fetched that are written later, where the reader has left them: as many as the last record took, none of
    /// them behind the ring's end.
    #[inline]
    fn look_ahead(&self, bytes: u64) {
        let window = &self.window;
        if window.free() >= AHEAD {
            let (offset, to_end) = window.place(window.head.wrapping_add(AHEAD - bytes));
            window.data.expect_write(offset, bytes.min(to_end) as usize);
        }
    }

    /// Wakes the reader where it sleeps; needed after [`Grant::commit_quietly`] only.
    #[inline]
    pub fn notify<G: Park + ?Sized>(&mut self, group: &G) {
        self.control.reader.wake(group, &mut self.sleep);
    }

    /// Says that no more comes. The reader still gets what was sent.
    pub fn close<G: Park + ?Sized>(mut self, group: &G) {
        self.control.writer.close(group.me().word());
        self.notify(group);
    }
}

/// Whether there are `need` free bytes. Looks at the reader's position only where those that we know of do not do.
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
    // It only ever comes nearer to our own.
    if tail % WORD != 0 || window.head.wrapping_sub(tail) > window.used() {
        return window.refuse();
    }
    window.tail = tail;
    Ok(window.free() >= need)
}

/// Room for one record. Dropped, it is as if it had not been asked for.
#[derive(Debug)]
pub struct Grant<'a, C, D> {
    writer: &'a mut Writer<C, D>,
    skip: u64,
    len: usize,
}

impl<'a, W: Word, C: Deref<Target = Control<W>>, D: Data> Grant<'a, C, D> {
    /// Most bytes of the record.
    pub fn limit(&self) -> usize {
        self.len
    }

    /// The ring's data, and the offset at which the record lies there, a multiple of 8: to write in place.
    pub fn place(&self) -> (&D, usize) {
        let window = &self.writer.window;
        let (offset, _) = window.place(window.head.wrapping_add(self.skip + WORD));
        (&window.data, offset)
    }

    /// Copies `bytes` to the record's byte `at` on. Fails with [`Error::RecordTooLong`] where they are not all inside.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        if !crate::data::inside(self.len, at, bytes.len()) {
            return Err(Error::RecordTooLong { limit: self.len });
        }
        let (data, offset) = self.place();
        data.write(offset + at, bytes);
        Ok(())
    }

    /// Sends the record's first `len` bytes, or all where it has fewer, and wakes the reader.
    #[inline]
    pub fn commit<G: Park + ?Sized>(self, len: usize, group: &G) {
        self.publish(len).notify(group);
    }

    /// As [`Grant::commit`], but a reader that sleeps goes on sleeping: call [`Writer::notify`] after the last of them.
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
