use super::*;
use std::io::{Read, Write};

fn setting() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Stream::new(ours.into()).unwrap(), theirs)
}

fn receive(stream: &Stream) -> Result<Vec<u8>> {
    let mut buffer = vec![9; MAX_PACKET];
    let bytes = stream.receive(&mut buffer)?;
    buffer.truncate(bytes);
    Ok(buffer)
}

#[test]
fn frames_in_any_pieces_are_received_as_sent() {
    let (stream, mut other) = setting();
    let frames: Vec<Vec<u8>> =
        [14, 60, 1514, 65_550, 14].iter().map(|bytes| vec![*bytes as u8; *bytes]).collect();
    let mut bytes = Vec::new();
    for frame in &frames {
        bytes.extend((frame.len() as u32).to_be_bytes());
        bytes.extend(frame);
    }
    for piece in [1, 3, 7, 1000, 40_000] {
        let mut received = Vec::new();
        for part in bytes.chunks(piece) {
            other.write_all(part).unwrap();
            while let Ok(packet) = receive(&stream) {
                assert_eq!(packet[..HEADER], [0; HEADER]);
                received.push(packet[HEADER..].to_vec());
            }
        }
        assert!(received == frames, "pieces of {piece} bytes");
    }
}

#[test]
fn a_frame_that_is_taken_in_part_is_continued() {
    let (stream, mut other) = setting();
    let packet = [&[0; HEADER][..], &(0..=255).cycle().take(60_000).collect::<Vec<u8>>()].concat();
    let (mut sent, mut received, mut times) = (0, Vec::new(), 0);
    other.set_nonblocking(true).unwrap();
    for _ in 0..20 {
        sent = 0;
        while let Err(error) = stream.send(&packet, &mut sent) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            times += usize::from(sent > 0);
            let mut buffer = vec![0; 5000];
            let bytes = other.read(&mut buffer).unwrap();
            received.extend(&buffer[..bytes]);
        }
    }
    assert!(times > 0 && sent == LENGTH + 60_000);
    let _ = other.read_to_end(&mut received);
    assert_eq!(received.len(), 20 * (LENGTH + 60_000));
    for frame in received.chunks(LENGTH + 60_000) {
        assert!(frame[..4] == 60_000_u32.to_be_bytes() && frame[4..] == packet[HEADER..]);
    }
}

#[test]
fn an_impossible_length_ends_the_stream() {
    for length in [u32::MAX, (MAX_PACKET - HEADER + 1) as u32] {
        let (stream, mut other) = setting();
        other.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(receive(&stream).unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(receive(&stream).is_err(), "it stays ended");
    }
}

#[test]
fn a_closed_stream_is_an_end_but_no_signal() {
    let (stream, mut other) = setting();
    other.write_all(&[0, 0, 0, 20, 1]).unwrap();
    drop(other);
    assert!(receive(&stream).unwrap().is_empty());
    assert_eq!(stream.send(&[0; 72], &mut 0).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert!(Stream::connect(Path::new("/nonexistent")).is_err());
}
