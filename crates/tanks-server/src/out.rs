//! Standard output and standard error. A reader that closes its end, as in `tanks replay --json FILE | head`, ends the
//! output and not the program: `println!` would panic there.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Whether anything still reads standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    /// The pipe is closed: printing more is pointless, and no error.
    Gone,
}

/// Writes `text` to standard output, with nothing added.
///
/// # Errors
/// When it cannot be written for any other reason than a closed pipe, such as a full disk.
pub(crate) fn print(text: impl Display) -> io::Result<Reader> {
    let mut out = io::stdout().lock();
    reader(write!(out, "{text}").and_then(|()| out.flush()))
}

/// Writes `text` and the end of a line to standard output.
///
/// # Errors
/// As [`print`].
pub(crate) fn line(text: impl Display) -> io::Result<Reader> {
    print(format_args!("{text}\n"))
}

/// Writes a line to standard error. There is no place left to report a failure to.
pub(crate) fn warn(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn reader(written: io::Result<()>) -> io::Result<Reader> {
    match written {
        Ok(()) => Ok(Reader::There),
        Err(problem) if problem.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(problem) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
        assert_eq!(reader(Ok(())).unwrap(), Reader::There);
        assert_eq!(reader(Err(io::ErrorKind::BrokenPipe.into())).unwrap(), Reader::Gone);
        assert!(reader(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
