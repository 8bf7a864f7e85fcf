//! File stamps, which show whether a file has changed: length, modification time, inode.

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

/// The stamp of a file at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    bytes: u64,
    /// `None` if the file system keeps no such time.
    modified: Option<SystemTime>,
    /// Device and inode, if the system has them: a rename puts another file in the place of a name.
    identity: Option<(u64, u64)>,
}

impl FileStamp {
    /// The stamp of an open file, or of a path.
    pub(super) fn of(metadata: &Metadata) -> Self {
        FileStamp {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            identity: identity(metadata),
        }
    }

    /// The changes since then, for a message; `None` without any.
    pub(super) fn change(&self, now: &Self) -> Option<String> {
        if self.bytes != now.bytes {
            return Some(format!("it had {} bytes and has {}", self.bytes, now.bytes));
        }
        if self.identity != now.identity {
            return Some("another file was put in its place".to_owned());
        }
        (self.modified != now.modified).then(|| "it was written to".to_owned())
    }

    /// The length.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The modification time, since 1970; 0 if it is unknown.
    pub(super) fn modified_nanoseconds(&self) -> u128 {
        let since = self.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_nanos())
    }

    /// The inode, if the system has one.
    pub(super) fn inode(&self) -> Option<u64> {
        self.identity.map(|(_, inode)| inode)
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}
