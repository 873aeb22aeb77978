//! The checker's memory, cut from a piece that the module gives.

use core::mem::{size_of, MaybeUninit};

use kyozon_typed_checker::flow::{Label, Memory};
use kyozon_typed_checker::program::MOST_FRAME;
use kyozon_typed_checker::value::Value;

/// Numbers for each label.
const NUMBERS: usize = 5;
/// Bytes of a label without its frame.
const LABEL: usize = size_of::<Label>() + NUMBERS * size_of::<u32>();
/// Bytes of the deepest frame, which the checker needs before any label.
const DEEPEST: usize = MOST_FRAME as usize / 4 * size_of::<Value>();

/// Words of memory that no value was written to.
pub(crate) type Words = [MaybeUninit<u64>];

/// Cuts memory into labels and their frames. A quarter goes to labels: then neither runs out long before the other as
/// long as frames have about 60 granules, and the deeper ones need few labels.
pub(crate) fn cut(words: &mut Words) -> Memory<'_> {
    let bytes = size_of_val(words).saturating_sub(DEEPEST);
    let labels = bytes / 4 / LABEL;
    let (numbers, words) = fill(words, labels * NUMBERS, 0u32);
    let (labels, words) = fill(words, labels, Label::BLANK);
    let (granules, _) = fill(words, usize::MAX, Value::UNKNOWN);
    Memory { labels, granules, numbers }
}

/// Takes the first words for as many copies of a value as are wanted, or as fit.
fn fill<T: Copy>(words: &mut Words, count: usize, value: T) -> (&mut [T], &mut Words) {
    const { assert!(align_of::<T>() <= align_of::<u64>()) };
    let count = count.min(size_of_val(words) / size_of::<T>());
    let (head, rest) = words.split_at_mut((count * size_of::<T>()).div_ceil(size_of::<u64>()));
    let start = head.as_mut_ptr().cast::<MaybeUninit<T>>();
    // SAFETY: the words are ours, are aligned for T, and have room for `count` of it.
    let places = unsafe { core::slice::from_raw_parts_mut(start, count) };
    for place in &mut *places {
        place.write(value);
    }
    // SAFETY: each was written, and a slice of values is laid out like one of places for them.
    let values = unsafe { &mut *(core::ptr::from_mut(places) as *mut [T]) };
    (values, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_up() {
        let mut words = vec![MaybeUninit::uninit(); (1 << 20) / 8];
        let memory = cut(&mut words);
        let frames = size_of_val(memory.granules);
        assert!(memory.labels.len() > 100 && memory.numbers.len() == 5 * memory.labels.len());
        assert!(frames + memory.labels.len() * LABEL > (1 << 20) - 64);
        assert!(frames > DEEPEST);
    }

    #[test]
    fn little_memory_makes_no_labels() {
        for words in 0..DEEPEST / 8 {
            let mut words = vec![MaybeUninit::uninit(); words];
            let memory = cut(&mut words);
            assert!(memory.labels.is_empty() && memory.numbers.is_empty());
            assert_eq!(memory.granules.len(), size_of_val(&*memory.granules) / size_of::<Value>());
        }
    }
}
