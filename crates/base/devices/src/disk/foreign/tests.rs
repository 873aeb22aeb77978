use super::*;
use std::io::Write;
use std::os::fd::AsFd;

fn refused(content: &[u8]) -> Option<String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    refuse(file.as_fd()).err().map(|error| error.to_string())
}

#[test]
fn each_format_is_named() {
    for Format(name, at, bytes) in FORMATS {
        let mut content = vec![0; at];
        content.extend_from_slice(bytes);
        // All that counts, and one byte less.
        assert!(refused(&content).unwrap().contains(&format!("a {name} image")));
        assert_eq!(refused(&content[..content.len() - 1]), None);
        assert!(content.len() <= BYTES);
    }
}

#[test]
fn raw_images_are_not_refused() {
    assert_eq!(refused(&[]), None);
    assert_eq!(refused(&[0; 4096]), None);
    // The footer of a VHD of a fixed size.
    let mut fixed = vec![0; 4096];
    fixed.extend_from_slice(b"conectix");
    assert_eq!(refused(&fixed), None);
}
