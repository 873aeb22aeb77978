use super::*;
use crate::fake::{Guest, FREE};

#[test]
fn packets_that_are_given_back_leave_nothing_behind() {
    let (mut guest, mut ring) = (Guest::default(), Ring::default());
    ring.start(&guest.memory, guest.place()).unwrap();
    for at in [FREE, FREE + 0x1000, FREE + 0x2000] {
        guest.ask(&[(at, 100, false)]);
    }
    let mut frame = [0; MAX_HEADERS];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 84, 5, 5, 0x20, 0, 64, 17]);
    frame[40..42].copy_from_slice(&[9, 9]);
    let headers = Headers::of_fragment(&[0; HEADER], &frame, 98);
    assert!(headers.as_ref().is_some_and(|headers| !headers.is_whole()));
    let mut group = Group { headers, ..Group::new() };
    while let Some((head, mut chain)) = ring.next(&guest.memory) {
        chain
            .read_with(&guest.memory, 100, |slice| {
                group.pieces.push(slice);
                Ok::<_, Bad>(())
            })
            .unwrap();
        group.bytes += 100;
        group.chains.push((head, chain));
        if group.chains.len() == 1 {
            group.first = (group.pieces.len(), group.bytes);
        }
    }
    // All but the first.
    group.give_back(&mut ring, 1);
    assert_eq!((group.chains.len(), group.pieces.len(), group.bytes), (1, 1, 100));
    group.give_back(&mut ring, 0);
    assert!(group.headers.is_none() && group.pieces.is_empty());
    assert_eq!((group.bytes, group.first), (0, (0, 0)));
    // They come again in their order, unread.
    let again: Vec<_> = std::iter::from_fn(|| ring.next(&guest.memory)).collect();
    assert!(again
        .iter()
        .map(|(head, chain)| (*head, chain.to_read()))
        .eq((0..3).map(|n| (n, 100))));
}
