//! Where a file is: `IMAGE:/PATH`, `IMAGE@PARTITION:/PATH`, or a path of the host.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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
    /// The image, if the place is in one.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// The path in the image, absolute; or the host's.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for Place {
    type Err = Infallible;

    /// The path in an image begins with a slash, so `:/` marks its start. A path of the host that contains it can be
    /// written with `.//` instead of the slash.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let Some((image, _)) = text.split_once(":/") else {
            return Ok(Self { image: None, path: text.into() });
        };
        let path = PathBuf::from(&text[image.len() + 1..]);
        let (file, partition) =
            match image.rsplit_once('@').map(|(file, number)| (file, number.parse())) {
                Some((file, Ok(number))) if number > 0 => (file, Some(number)),
                _ => (image, None),
            };
        Ok(Self { image: Some(Image { file: file.into(), partition }), path })
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

    fn place(text: &str) -> (Option<(&'static str, Option<u32>)>, String) {
        let place: Place = text.parse().expect("infallible");
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
}
