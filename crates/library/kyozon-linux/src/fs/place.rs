//! Where a file is: `IMAGE:/PATH`, `IMAGE@PARTITION:/PATH`, or a path of the host.

use anyhow::{Context, Result};
use clap::builder::{MapValueParser, OsStringValueParser, TypedValueParser, ValueParserFactory};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An image and one of its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The file or block device.
    pub file: PathBuf,
    /// The partition's number from 1 on; none if the file system is the whole image.
    pub partition: Option<u32>,
}

/// A file of an image, or of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    image: Option<Image>,
    path: PathBuf,
}

impl Place {
    /// The root directory of an image.
    pub fn root(image: Image) -> Self {
        Self { image: Some(image), path: "/".into() }
    }

    /// A path that begins with `:/` is one in `image`; `@2:/` begins one in its second partition.
    pub fn complete(&mut self, image: Option<&Image>) -> Result<()> {
        let text = self.to_string();
        if let Some(own) = self.image.as_mut().filter(|own| own.file.as_os_str().is_empty()) {
            let image = image.with_context(|| format!("{text} has no image: write IMAGE:/PATH"))?;
            own.file = image.file.clone();
            own.partition = own.partition.or(image.partition);
        }
        Ok(())
    }

    /// The image, if the place is in one.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// The path in the image, absolute; or the host's.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What the host has under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Folder,
    File,
}

fn kind(path: &Path) -> Kind {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Kind::Folder,
        Ok(_) => Kind::File,
        Err(_) => Kind::Nothing,
    }
}

impl Image {
    /// Takes an image's name apart. A file that has the whole name is the image.
    fn parse(name: &OsStr, kind: impl Fn(&Path) -> Kind) -> Self {
        let bytes = name.as_bytes();
        let number = bytes.iter().rposition(|&byte| byte == b'@').and_then(|at| {
            let number: u32 = std::str::from_utf8(&bytes[at + 1..]).ok()?.parse().ok()?;
            (number > 0).then_some((OsStr::from_bytes(&bytes[..at]), number))
        });
        match number {
            Some((file, number)) if kind(Path::new(name)) != Kind::File => {
                Self { file: file.into(), partition: Some(number) }
            }
            _ => Self { file: name.into(), partition: None },
        }
    }
}

impl Place {
    /// The place that a word of a command line names.
    #[must_use]
    pub fn parse(text: &OsStr) -> Self {
        Self::parse_with(text, kind)
    }

    /// The path in an image begins with a slash, so `:/` ends the image's name: the first one behind the name of a file
    /// that exists. Without such a file, a path in a folder that exists is the host's.
    fn parse_with(text: &OsStr, kind: impl Fn(&Path) -> Kind) -> Self {
        let bytes = text.as_bytes();
        let mut images =
            bytes.windows(2).enumerate().filter(|(_, pair)| pair == b":/").map(|(at, _)| {
                let image = Image::parse(OsStr::from_bytes(&bytes[..at]), &kind);
                Self { image: Some(image), path: OsStr::from_bytes(&bytes[at + 1..]).into() }
            });
        let Some(first) = images.next() else { return Self { image: None, path: text.into() } };
        let exists =
            |place: &Self| place.image().is_some_and(|image| kind(&image.file) == Kind::File);
        if exists(&first) {
            return first;
        }
        if let Some(other) = images.find(exists) {
            return other;
        }
        let folder = Path::new(text).parent().is_some_and(|parent| kind(parent) == Kind::Folder);
        if folder {
            return Self { image: None, path: text.into() };
        }
        first
    }
}

impl ValueParserFactory for Image {
    type Parser = MapValueParser<OsStringValueParser, fn(OsString) -> Self>;

    fn value_parser() -> Self::Parser {
        OsStringValueParser::new().map(|name| Self::parse(&name, kind))
    }
}

impl ValueParserFactory for Place {
    type Parser = MapValueParser<OsStringValueParser, fn(OsString) -> Self>;

    fn value_parser() -> Self::Parser {
        OsStringValueParser::new().map(|text| Self::parse(&text))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(image) = &self.image {
            write!(f, "{}", image.file.display())?;
            if let Some(number) = image.partition {
                write!(f, "@{number}")?;
            }
            write!(f, ":")?;
        }
        write!(f, "{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a host with these files and folders.
    fn place(text: &str) -> (Option<(&'static str, Option<u32>)>, String) {
        let host = |path: &Path| match path.to_str().expect("text") {
            "disk.img" | "both" | "both@1" | "disk@7" | "a:/disk" => Kind::File,
            "folder:" | "a:" => Kind::Folder,
            _ => Kind::Nothing,
        };
        let place = Place::parse_with(OsStr::new(text), host);
        let image = place
            .image()
            .map(|i| (&*i.file.to_str().expect("text").to_owned().leak(), i.partition));
        (image, place.path().to_str().expect("text").into())
    }

    #[test]
    fn images_partitions_and_paths_of_the_host() {
        assert_eq!(place("disk.img:/etc"), (Some(("disk.img", None)), "/etc".into()));
        assert_eq!(place("/tmp/disk@2:/"), (Some(("/tmp/disk", Some(2))), "/".into()));
        assert_eq!(place("me@home:/x"), (Some(("me@home", None)), "/x".into()));
        assert_eq!(place("disk@0:/x"), (Some(("disk@0", None)), "/x".into()));
        assert_eq!(place("a:b"), (None, "a:b".into()));
        assert_eq!(place("/tmp/x"), (None, "/tmp/x".into()));
    }

    #[test]
    fn a_file_of_the_whole_name_is_the_image() {
        assert_eq!(place("both@1:/x"), (Some(("both@1", None)), "/x".into()));
        assert_eq!(place("both@2:/x"), (Some(("both", Some(2))), "/x".into()));
        assert_eq!(place("disk@7:/x"), (Some(("disk@7", None)), "/x".into()));
    }

    #[test]
    fn colons_in_paths() {
        assert_eq!(place("folder:/x"), (None, "folder:/x".into()));
        assert_eq!(place("a:/disk:/x"), (Some(("a:/disk", None)), "/x".into()));
        assert_eq!(place("disk.img:/x:/y"), (Some(("disk.img", None)), "/x:/y".into()));
    }

    #[test]
    fn places_without_an_image_get_one() {
        let image = Image { file: "disk".into(), partition: Some(3) };
        let completed = |text: &str| {
            let mut place = Place::parse(OsStr::new(text));
            place.complete(Some(&image)).unwrap();
            place.to_string()
        };
        assert_eq!(completed(":/x"), "disk@3:/x");
        assert_eq!(completed("@2:/x"), "disk@2:/x");
        assert_eq!(completed("other:/x"), "other:/x");
        assert_eq!(completed("/x"), "/x");
        assert!(Place::parse(OsStr::new("@2:/x")).complete(None).is_err());
    }

    #[test]
    fn names_that_are_not_text() {
        let place = Place::parse(OsStr::from_bytes(b"disk\xff@2:/\xfe"));
        let image = place.image().expect("an image");
        assert_eq!(image.file.as_os_str().as_bytes(), b"disk\xff");
        assert_eq!(
            (image.partition, place.path().as_os_str().as_bytes()),
            (Some(2), &b"/\xfe"[..])
        );
    }
}
