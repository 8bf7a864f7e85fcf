//! Files that are written, checked before anything is read: what cannot be kept would be known when
//! the run is over, and lost.

use crate::Failure;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The file of ids that belongs to a model's file: `model.safetensors.users`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Refuses to write over a file that is read. Pipes and devices may be both, and so may two links
/// to one file: what is written is a new file, of which the other link knows nothing.
pub(crate) fn check_not_read<'a>(
    flag: &str,
    written: &Path,
    read: impl IntoIterator<Item = &'a Path>,
) -> Result<(), String> {
    // One that is not there may be written before it is read: a cache.
    let file = |path: &Path| match path.canonicalize() {
        Ok(there) => there.is_file().then_some(there),
        Err(_) => std::path::absolute(path).ok(),
    };
    let Some(lost) = file(written) else { return Ok(()) };
    match read.into_iter().find(|path| file(path).as_ref() == Some(&lost)) {
        Some(path) => Err(format!(
            "{flag}: `{}` is read, as `{}`, and would be lost: write to another file",
            written.display(),
            path.display()
        )),
        None => Ok(()),
    }
}

/// Refuses a path that cannot be replaced by a new file, and a pipe that has no reader. Devices are
/// taken for writable.
pub(crate) fn check_writable(flag: &str, path: &Path) -> Result<(), Failure> {
    let ends_in_separator =
        path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| byte == b'/');
    if path.is_dir() || ends_in_separator {
        return Err(format!("{flag}: `{}` is a folder: name a file in it", path.display()).into());
    }
    if let Some(folder) = path.parent()
        && !(folder.as_os_str().is_empty() || folder.is_dir())
    {
        return Err(format!("{flag}: there is no folder `{}`", folder.display()).into());
    }
    if path.exists() && !path.is_file() {
        return check_pipe(flag, path);
    }
    // As long a name as that of the file which is written first and then renamed.
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-tried.tmp", std::process::id()));
    // Of a link the file that it leads to is written.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let tried = target.with_file_name(name);
    let made = OpenOptions::new().write(true).create_new(true).open(&tried);
    let replaced = made.and_then(|made| {
        let replaced = check_replaceable(&target, &made);
        fs::remove_file(&tried).and(replaced)
    });
    replaced.map_err(|error| {
        let path = path.display();
        format!("{flag}: `{path}` cannot be written: {error}: name a file elsewhere").into()
    })
}

/// Refuses a file that no other can be renamed onto: one that is mounted, and one of another user
/// in a folder in which only owners may replace.
#[cfg(target_os = "linux")]
fn check_replaceable(target: &Path, made: &fs::File) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let Ok(there) = fs::symlink_metadata(target) else { return Ok(()) };
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    // The fifth word of a line is where it is mounted.
    let mut mounted = mounts
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
    if mounted.any(|place| place == target.as_os_str().as_bytes()) {
        return Err(io::Error::other("something is mounted there, so that it cannot be replaced"));
    }
    let Some(folder) = target.parent().and_then(|folder| folder.metadata().ok()) else {
        return Ok(());
    };
    // What was made there is of the user who runs this.
    let user = made.metadata()?.uid();
    if folder.mode() & STICKY != 0 && ![0, there.uid(), folder.uid()].contains(&user) {
        return Err(io::Error::other(
            "it is another user's, in a folder in which only owners may replace files",
        ));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_replaceable(_: &Path, _: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Refuses a pipe that nobody reads: to open it later would wait for ever.
#[cfg(unix)]
fn check_pipe(flag: &str, path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    if !path.metadata()?.file_type().is_fifo() {
        return Ok(());
    }
    match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
        // A reader sees the end of the data when the last writer has closed the pipe: it stays open
        // until the program ends.
        Ok(pipe) => {
            std::mem::forget(pipe);
            Ok(())
        }
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Err(format!(
            "{flag}: `{}` is a pipe that nothing reads: start what reads it first, or name a file",
            path.display()
        )
        .into()),
        Err(error) => Err(format!("{flag}: `{}`: {error}", path.display()).into()),
    }
}

#[cfg(not(unix))]
fn check_pipe(_: &str, _: &Path) -> Result<(), Failure> {
    Ok(())
}
