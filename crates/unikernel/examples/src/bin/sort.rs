//! Sorts numbers: each thread sorts a piece, then all threads together merge pieces in pairs. Arguments: threads,
//! numbers, `time`.
#![cfg_attr(feature = "image", no_std, no_main)]

extern crate alloc;

use alloc::{vec, vec::Vec};
use kyozon_portable::{fingerprint, machine, program, Arguments, Xorshift};

program!(run);

fn run() -> u8 {
    let arguments = Arguments::new();
    let threads = arguments.number(0, 32, 2);
    let count = arguments.number(1, 1 << 30, 1 << 20);
    let mut numbers: Vec<u32> = Xorshift::new(1).take(count).collect();
    let mut spare = vec![0; count];
    let began = machine::now();
    sort(&mut numbers, &mut spare, threads);
    let took = machine::now() - began;
    let sorted = numbers.windows(2).all(|pair| pair[0] <= pair[1]);
    let print = fingerprint(numbers.iter().map(|number| u64::from(*number)));
    machine::print_line(format_args!("{count} numbers sorted: {sorted}, {print:016x}"));
    arguments.print_time(took);
    u8::from(!sorted)
}

/// Sorts with `threads` threads; `spare` is a buffer of the same length.
fn sort(numbers: &mut [u32], spare: &mut [u32], threads: usize) {
    let mut piece = numbers.len().div_ceil(threads).max(1);
    machine::thread::scope(|scope| {
        let mut pieces = numbers.chunks_mut(piece);
        let own = pieces.next();
        for other in pieces {
            scope.spawn(|| other.sort_unstable());
        }
        if let Some(own) = own {
            own.sort_unstable();
        }
    });
    let (mut from, mut to) = (numbers, spare);
    let mut swapped = false;
    while piece < from.len() {
        merge_all(from, to, piece, threads);
        (from, to) = (to, from);
        swapped = !swapped;
        piece *= 2;
    }
    if swapped {
        to.copy_from_slice(from);
    }
}

/// Merges sorted pieces of length `piece` in pairs.
fn merge_all(from: &[u32], to: &mut [u32], piece: usize, threads: usize) {
    let share = from.len().div_ceil(threads);
    machine::thread::scope(|scope| {
        let mut own = None;
        for (number, part) in to.chunks_mut(share).enumerate() {
            let work = move || merge_part(from, part, number * share, piece);
            match own {
                None => own = Some(work),
                Some(_) => drop(scope.spawn(work)),
            }
        }
        if let Some(mut work) = own {
            work();
        }
    });
}

/// Fills `to`, the part from position `start` on of the result of merging all pieces in pairs.
fn merge_part(from: &[u32], mut to: &mut [u32], mut start: usize, piece: usize) {
    while !to.is_empty() {
        let pair = start / (2 * piece) * (2 * piece);
        let end = from.len().min(pair + 2 * piece);
        let middle = end.min(pair + piece);
        let (first, second) = (&from[pair..middle], &from[middle..end]);
        let here = to.len().min(end - start);
        let (now, later) = to.split_at_mut(here);
        let skip = start - pair;
        let of_first = split(first, second, skip);
        merge(&first[of_first..], &second[skip - of_first..], now);
        (to, start) = (later, start + here);
    }
}

/// How many of the first `count` numbers of the merged result come from `first`.
fn split(first: &[u32], second: &[u32], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(second.len()), count.min(first.len()));
    while low < high {
        let middle = (low + high) / 2;
        if first[middle] <= second[count - middle - 1] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Merges two sorted pieces, up to the length of `to`, which is not more than theirs.
fn merge(first: &[u32], second: &[u32], to: &mut [u32]) {
    let (mut a, mut b, mut done) = (0, 0, 0);
    // Which piece is next is unpredictable, so no branch depends on it.
    while done < to.len() && a < first.len() && b < second.len() {
        let (of_first, of_second) = (first[a], second[b]);
        let takes_first = of_first <= of_second;
        to[done] = if takes_first { of_first } else { of_second };
        a += usize::from(takes_first);
        b += usize::from(!takes_first);
        done += 1;
    }
    let rest = if a < first.len() { &first[a..] } else { &second[b..] };
    let room = &mut to[done..];
    room.copy_from_slice(&rest[..room.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_threads_sorts_any_count() {
        for count in [1, 2, 3, 7, 100, 1001] {
            for threads in [1, 2, 3, 4, 7] {
                let mut numbers: Vec<u32> = Xorshift::new(9).take(count).map(|n| n % 50).collect();
                let mut want = numbers.clone();
                want.sort_unstable();
                sort(&mut numbers, &mut vec![0; count], threads);
                assert_eq!(numbers, want, "{count} {threads}");
            }
        }
    }
}
