//! The entries of an archive: ustar, the old format, long names of GNU, records of pax, and sparse files of both.
//!
//! The crate `tar` takes fields and records apart. Its own reader expands holes, so that a small hostile archive could
//! keep it busy for ever; here a sparse file is a list of pieces.
//!
//! Invariant: what an archive says costs memory in proportion to its own bytes.

use anyhow::{anyhow, bail, ensure, Context, Result};
use std::io::{ErrorKind, Read};
use tar::{EntryType, Header, PaxExtensions};

/// Bytes of a block.
pub const BLOCK: usize = 512;
/// Bytes of a name or of records beyond which an archive is damaged.
const MAX_RECORDS: u64 = 4 << 20;
/// Pieces of a sparse file beyond which an archive is damaged.
const MAX_PIECES: u64 = 1 << 20;

/// A piece of data of a file: where it starts, and its bytes.
pub type Piece = (u64, u64);

/// An entry.
#[derive(Debug)]
pub struct Entry {
    /// Its type.
    pub kind: EntryType,
    /// Its path, as the archive has it.
    pub path: Vec<u8>,
    /// The target of a link.
    pub link: Vec<u8>,
    /// Rights.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// Modification time: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Access time, if the archive has it.
    pub accessed: Option<(i64, i64)>,
    /// Numbers of a device.
    pub device: (u32, u32),
    /// Bytes of the file.
    pub size: u64,
    /// The pieces whose data follow.
    pub pieces: Vec<Piece>,
    /// Extended attributes.
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Records of pax that concern the next entry, or all.
type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads entries. Between two calls of [`next_entry`](Self::next_entry), [`data`](Self::data) reads the entry's data.
pub struct Headers<R: Read> {
    from: R,
    /// Bytes of the entry's data that were not read, and of padding behind them.
    left: u64,
    padding: u64,
    global: Records,
}

fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK as u64) - bytes
}

/// A value of a record of several: the last one counts.
fn find<'a>(records: &'a Records, key: &str) -> Option<&'a [u8]> {
    records.iter().rev().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value.as_slice())
}

fn number(value: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
    text.ok_or_else(|| anyhow!("the archive is damaged: a number is none"))
}

/// Seconds and nanoseconds of a decimal number, which may have a sign and a fraction.
fn time(value: &[u8]) -> Result<(i64, i64)> {
    let bad = || anyhow!("the archive is damaged: a time is none");
    let text = std::str::from_utf8(value).map_err(|_| bad())?;
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = seconds.parse().map_err(|_| bad())?;
    ensure!(fraction.bytes().all(|byte| byte.is_ascii_digit()), bad());
    let nanoseconds: i64 = format!("{fraction:0<9}")[..9].parse().map_err(|_| bad())?;
    Ok(match (negative, nanoseconds) {
        (false, _) => (seconds, nanoseconds),
        (true, 0) => (-seconds, 0),
        (true, _) => (-seconds - 1, 1_000_000_000 - nanoseconds),
    })
}

/// A numeric field of a header: octal, or binary with a sign if its first bit is set.
fn field(bytes: &[u8]) -> Result<i64> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(0) };
    if first & 0x80 == 0 {
        let text: Vec<u8> = bytes
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .filter(|byte| *byte != b' ')
            .collect();
        if text.is_empty() {
            return Ok(0);
        }
        let text = std::str::from_utf8(&text).ok();
        let value = text.and_then(|text| i64::from_str_radix(text, 8).ok());
        return value.ok_or_else(|| anyhow!("the archive is damaged: a number is none"));
    }
    let start = if first & 0x40 != 0 { i128::from(first) - 256 } else { i128::from(first & 0x3f) };
    let value = rest.iter().try_fold(start, |value, &byte| {
        value.checked_mul(256).map(|value| value + i128::from(byte))
    });
    value
        .and_then(|value| i64::try_from(value).ok())
        .ok_or_else(|| anyhow!("the archive is damaged: a number is too large"))
}

fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().take_while(|byte| *byte != 0).collect()
}

fn is_valid(block: &[u8; BLOCK]) -> bool {
    // The sum of all bytes, with spaces in place of the field itself; some old programs took bytes as signed.
    let byte = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { b' ' } else { *byte };
    let unsigned: i64 = block.iter().enumerate().map(|pair| i64::from(byte(pair))).sum();
    let signed: i64 = block.iter().enumerate().map(|pair| i64::from(byte(pair) as i8)).sum();
    field(&block[148..156]).is_ok_and(|sum| sum == unsigned || sum == signed)
}

impl<R: Read> Headers<R> {
    /// The entries of an archive.
    pub fn new(from: R) -> Self {
        Self { from, left: 0, padding: 0, global: Vec::new() }
    }

    /// Reads all of `buffer`, or fails.
    fn exactly(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            crate::interrupt::check()?;
            match self.from.read(&mut buffer[done..]) {
                Ok(0) => bail!("the archive is truncated"),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error).context("the archive"),
            }
        }
        Ok(())
    }

    fn skip(&mut self, mut bytes: u64) -> Result<()> {
        let mut buffer = [0; 1 << 14];
        while bytes > 0 {
            let piece = bytes.min(buffer.len() as u64) as usize;
            self.exactly(&mut buffer[..piece])?;
            bytes -= piece as u64;
        }
        Ok(())
    }

    /// Reads the next bytes of the entry's data, all that fit in `buffer`.
    pub fn data(&mut self, buffer: &mut [u8]) -> Result<()> {
        ensure!(
            buffer.len() as u64 <= self.left,
            "the archive is damaged: a sparse file has no data"
        );
        self.left -= buffer.len() as u64;
        self.exactly(buffer)
    }

    /// Reads to the end of the stream, so that the program that writes it does not fail.
    pub fn drain(&mut self) -> Result<()> {
        let mut buffer = [0; 1 << 14];
        loop {
            crate::interrupt::check()?;
            match self.from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(_) => (),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error).context("the archive"),
            }
        }
    }

    /// Small data of an entry that describes another one.
    fn records(&mut self, size: u64) -> Result<Vec<u8>> {
        ensure!(size <= MAX_RECORDS, "the archive is damaged: a name has {size} bytes");
        let mut bytes = vec![0; size as usize];
        self.exactly(&mut bytes)?;
        self.skip(padding(size))?;
        Ok(bytes)
    }

    /// The next entry; none at the archive's end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let left = std::mem::take(&mut self.left) + std::mem::take(&mut self.padding);
        self.skip(left)?;
        let mut records = self.global.clone();
        let (mut path, mut link) = (None, None);
        loop {
            let mut block = [0; BLOCK];
            self.exactly(&mut block)?;
            if block == [0; BLOCK] {
                return Ok(None);
            }
            if !is_valid(&block) {
                let compressed = [&b"\x1f\x8b"[..], b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];
                ensure!(
                    !compressed.iter().any(|magic| block.starts_with(magic)),
                    "the archive is compressed: give it to zcat, bzcat, xzcat or zstdcat first"
                );
                bail!("it is no tar archive, or is damaged: a header's checksum is wrong");
            }
            let header = Header::from_byte_slice(&block);
            let size = field(&block[124..136])?;
            let size = u64::try_from(size).context("the archive is damaged: a negative size")?;
            match header.entry_type() {
                EntryType::GNULongName => path = Some(text(&self.records(size)?)),
                EntryType::GNULongLink => link = Some(text(&self.records(size)?)),
                EntryType::XHeader => records.extend(parse(&self.records(size)?)?),
                EntryType::XGlobalHeader => {
                    let all = parse(&self.records(size)?)?;
                    self.global.extend(all.iter().cloned());
                    ensure!(
                        self.global
                            .iter()
                            .map(|(key, value)| key.len() + value.len())
                            .sum::<usize>()
                            <= MAX_RECORDS as usize,
                        "the archive is damaged: too many global records"
                    );
                    records.extend(all);
                }
                _ => {
                    let size = find(&records, "size").map_or(Ok(size), number)?;
                    // Only files have data. Other types may have the size of what they lead to.
                    let size = if has_data(header.entry_type()) { size } else { 0 };
                    let mut entry = describe(header, &block, &records, size)?;
                    entry.path = path.unwrap_or(entry.path);
                    entry.link = link.unwrap_or(entry.link);
                    self.left = size;
                    self.padding = padding_of(size)?;
                    self.sparse(header, &block, &records, &mut entry)?;
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// Reads the map of a sparse file.
    fn sparse(
        &mut self,
        header: &Header,
        block: &[u8; BLOCK],
        records: &Records,
        entry: &mut Entry,
    ) -> Result<()> {
        if header.entry_type() == EntryType::GNUSparse {
            let mut pieces = Vec::new();
            let mut add = |fields: &[u8]| -> Result<()> {
                for piece in fields.chunks_exact(24).filter(|piece| piece[0] != 0) {
                    let piece = (field(&piece[..12])?, field(&piece[12..])?);
                    pieces.push((u64::try_from(piece.0)?, u64::try_from(piece.1)?));
                }
                ensure!(pieces.len() as u64 <= MAX_PIECES, "the archive is damaged: a sparse file");
                Ok(())
            };
            add(&block[386..482])?;
            let mut more = block[482] != 0;
            while more {
                let mut block = [0; BLOCK];
                self.exactly(&mut block)?;
                add(&block[..504])?;
                more = block[504] != 0;
            }
            entry.kind = EntryType::Regular;
            entry.size = u64::try_from(field(&block[483..495])?)?;
            entry.pieces = pieces;
        } else if find(records, "GNU.sparse.major").is_some_and(|major| major == b"1") {
            let mut lines = Vec::new();
            let count = self.line(&mut lines)?;
            ensure!(count <= MAX_PIECES, "the archive is damaged: a sparse file of {count} pieces");
            let mut pieces = Vec::new();
            for _ in 0..count {
                pieces.push((self.line(&mut lines)?, self.line(&mut lines)?));
            }
            let real = find(records, "GNU.sparse.realsize");
            entry.size = number(real.context("the archive is damaged: a sparse file")?)?;
            entry.pieces = pieces;
        } else if let Some(map) = find(records, "GNU.sparse.map") {
            // Version 0.1.
            let numbers: Vec<u64> =
                map.split(|byte| *byte == b',').map(number).collect::<Result<_>>()?;
            entry.pieces = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            entry.size = number(find(records, "GNU.sparse.size").unwrap_or(b"0"))?;
        } else if let Some(size) = find(records, "GNU.sparse.size") {
            // Version 0.0: a record for each number.
            let all = |key: &str| -> Result<Vec<u64>> {
                let own = records.iter().filter(|(name, _)| name == key.as_bytes());
                own.map(|(_, value)| number(value)).collect()
            };
            let (starts, bytes) = (all("GNU.sparse.offset")?, all("GNU.sparse.numbytes")?);
            entry.pieces = starts.into_iter().zip(bytes).collect();
            entry.size = number(size)?;
        } else {
            return Ok(());
        }
        let mut end = 0;
        for (start, bytes) in &entry.pieces {
            let fits = *start >= end && start.checked_add(*bytes).is_some_and(|e| e <= entry.size);
            ensure!(fits, "the archive is damaged: a sparse file's pieces are in no order");
            end = start + bytes;
        }
        let data: u64 = entry.pieces.iter().map(|(_, bytes)| bytes).sum();
        ensure!(data <= self.left, "the archive is damaged: a sparse file has no data");
        entry.pieces.retain(|(_, bytes)| *bytes > 0);
        Ok(())
    }

    /// A number on a line of a sparse file's map, which is in blocks before the data.
    fn line(&mut self, lines: &mut Vec<u8>) -> Result<u64> {
        loop {
            if let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
                let value = number(&lines[..end])?;
                lines.drain(..=end);
                return Ok(value);
            }
            ensure!(
                lines.len() < BLOCK,
                "the archive is damaged: a sparse file's map has no lines"
            );
            let mut block = [0; BLOCK];
            self.data(&mut block)?;
            lines.extend_from_slice(&block);
        }
    }
}

fn has_data(kind: EntryType) -> bool {
    use EntryType::{Block, Char, Directory, Fifo, Link, Symlink};
    !matches!(kind, Link | Symlink | Char | Block | Directory | Fifo)
}

fn padding_of(size: u64) -> Result<u64> {
    ensure!(size <= i64::MAX as u64, "the archive is damaged: a file of {size} bytes");
    Ok(padding(size))
}

fn parse(bytes: &[u8]) -> Result<Records> {
    PaxExtensions::new(bytes)
        .map(|record| {
            let record = record.context("the archive is damaged: a record of pax")?;
            Ok((record.key_bytes().to_vec(), record.value_bytes().to_vec()))
        })
        .collect()
}

fn describe(header: &Header, block: &[u8; BLOCK], records: &Records, size: u64) -> Result<Entry> {
    let id = |key: &str, bytes: &[u8]| -> Result<u32> {
        let value = match find(records, key) {
            Some(value) => number(value)?,
            None => field(bytes)? as u64,
        };
        u32::try_from(value).context("the archive is damaged: an owner's number is too large")
    };
    let path = find(records, "GNU.sparse.name").or(find(records, "path"));
    let mut kind = header.entry_type();
    let path = path.map_or_else(|| header.path_bytes().into_owned(), <[u8]>::to_vec);
    // The oldest format marks a folder by the end of its name.
    if matches!(kind, EntryType::Regular) && path.ends_with(b"/") {
        kind = EntryType::Directory;
    }
    let link = find(records, "linkpath").map(<[u8]>::to_vec);
    let extended = records.iter().filter_map(|(key, value)| {
        Some((key.strip_prefix(b"SCHILY.xattr.")?.to_vec(), value.clone()))
    });
    let number = |bytes: &[u8]| u32::try_from(field(bytes).unwrap_or(0)).unwrap_or(0);
    Ok(Entry {
        kind,
        path,
        link: link.unwrap_or_else(|| text(&block[157..257])),
        mode: field(&block[100..108])? as u32 & 0o7777,
        owner: (id("uid", &block[108..116])?, id("gid", &block[116..124])?),
        modified: match find(records, "mtime") {
            Some(value) => time(value)?,
            None => (field(&block[136..148])?, 0),
        },
        accessed: find(records, "atime").map(time).transpose()?,
        device: (number(&block[329..337]), number(&block[337..345])),
        size,
        pieces: if size > 0 { vec![(0, size)] } else { Vec::new() },
        extended: extended.collect(),
    })
}

#[cfg(test)]
mod tests;
