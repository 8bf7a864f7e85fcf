//! What tells whether a file is still the one that it was: length, time of change, inode.

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    bytes: u64,
    /// `None` where the file system keeps no such time.
    modified: Option<SystemTime>,
    /// Device and inode, where the system has them: a rename puts another file in the place of a name.
    identity: Option<(u64, u64)>,
}

impl FileStamp {
    /// That of an open file, or of a path.
    pub(super) fn of(metadata: &Metadata) -> Self {
        FileStamp {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            identity: identity(metadata),
        }
    }

    /// What has changed since then, for a message; `None` if nothing has.
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

    /// The time of change, since 1970; 0 where it is not known.
    pub(super) fn modified_nanoseconds(&self) -> u128 {
        let since = self.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_nanos())
    }

    /// The inode, where the system has one.
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
