use super::*;

#[test]
fn attributes_start_at_multiples_of_four() {
    let bytes = Message::new(16, 0, &[9; 6]).with(3, b"lo\0").with(4, &[1, 2, 3, 4]).finish();
    assert_eq!(word(&bytes, 0) as usize, bytes.len());
    let read: Vec<_> = attributes(&bytes[HEADER + 8..]).collect();
    assert_eq!(read, [(3, &b"lo\0"[..]), (4, &[1, 2, 3, 4][..])]);
}

#[test]
fn attributes_with_impossible_lengths_end_the_list() {
    for length in [0u16, 3, 200, u16::MAX] {
        let bytes = [&length.to_ne_bytes()[..], &[1, 0, 5, 5, 5, 5]].concat();
        assert_eq!(attributes(&bytes).count(), 0, "{length}");
    }
}

/// An acknowledgement as the kernel sends it, with a request of `request` bytes or only its header.
fn refused(capped: bool, request: usize) -> Vec<u8> {
    let mut payload = (-libc::EINVAL).to_ne_bytes().to_vec();
    let mut header = vec![0; if capped { HEADER } else { request }];
    header[..4].copy_from_slice(&(request as u32).to_ne_bytes());
    payload.extend(header);
    let text = b"Invalid prefix\0";
    payload.extend_from_slice(&((ATTRIBUTE + text.len()) as u16).to_ne_bytes());
    payload.extend_from_slice(&NLMSGERR_ATTR_MSG.to_ne_bytes());
    payload.extend_from_slice(text);
    let flags = HAS_ATTRIBUTES | if capped { CAPPED } else { 0 };
    let mut bytes = ((HEADER + payload.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend(payload);
    bytes
}

#[test]
fn a_refusal_has_the_kernels_words() {
    let words = Some("Invalid prefix".to_owned());
    let expected = Part::End(Err(Refused { errno: Errno(libc::EINVAL), words }));
    for capped in [false, true] {
        assert_eq!(parts(&refused(capped, 40)).next().as_ref(), Some(&expected));
    }
    // Whatever is cut off, nothing panics.
    let whole = refused(false, 40);
    for length in 0..whole.len() {
        let _ = parts(&whole[..length]).count();
    }
}
