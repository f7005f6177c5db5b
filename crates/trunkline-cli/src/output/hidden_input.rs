//! A line from the terminal that is not echoed.

use std::io;

/// Reads a line without echo. The terminal is set back however the line ends, also by Ctrl-C.
#[cfg(unix)]
pub(super) fn read_line(input: &io::Stdin, max: usize) -> io::Result<String> {
    use std::io::Read as _;

    let _hidden = unix::HiddenTerminal::new(input)?;
    let mut line = HiddenLine { bytes: Vec::new(), max };
    for byte in input.lock().bytes() {
        if line.push(byte?)? {
            break;
        }
    }
    text(line.bytes)
}

#[cfg(not(unix))]
pub(super) fn read_line(_: &io::Stdin, _: usize) -> io::Result<String> {
    rpassword::read_password()
}

/// A value as text. The error does not quote it.
pub(super) fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the value is not UTF-8"))
}

/// A line that is typed. Without echo the terminal cannot edit it: in its line mode, it would also cut it off
/// at 4,096 bytes without a message.
#[cfg(any(unix, test))]
struct HiddenLine {
    bytes: Vec<u8>,
    max: usize,
}

#[cfg(any(unix, test))]
impl HiddenLine {
    /// Adds a typed byte. Returns whether the line has ended.
    fn push(&mut self, byte: u8) -> io::Result<bool> {
        const INTERRUPT: u8 = 0x03;
        const END: u8 = 0x04;
        const ERASE: [u8; 2] = [0x08, 0x7f];
        const ERASE_LINE: u8 = 0x15;
        match byte {
            b'\n' | b'\r' | END => return Ok(true),
            INTERRUPT => return Err(io::ErrorKind::Interrupted.into()),
            ERASE_LINE => self.bytes.clear(),
            byte if ERASE.contains(&byte) => self.erase(),
            _ if self.bytes.len() >= self.max => {}
            byte => self.bytes.push(byte),
        }
        Ok(false)
    }

    /// Removes the last character.
    fn erase(&mut self) {
        let is_continuation = |byte: u8| byte & 0xc0 == 0x80;
        while self.bytes.pop().is_some_and(is_continuation) {}
    }
}

#[cfg(unix)]
mod unix {
    //! The modes of a terminal.

    use std::io;

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// Hides input until it is dropped.
    pub(super) struct HiddenTerminal<'i> {
        input: &'i io::Stdin,
        before: Termios,
    }

    impl<'i> HiddenTerminal<'i> {
        pub(super) fn new(input: &'i io::Stdin) -> io::Result<Self> {
            let before = tcgetattr(input)?;
            let mut hidden = before.clone();
            hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
            tcsetattr(input, OptionalActions::Flush, &hidden)?;
            Ok(Self { input, before })
        }
    }

    impl Drop for HiddenTerminal<'_> {
        fn drop(&mut self) {
            let _ = tcsetattr(self.input, OptionalActions::Flush, &self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> io::Result<String> {
        let mut line = HiddenLine { bytes: Vec::new(), max: 8 };
        for byte in bytes {
            if line.push(*byte)? {
                break;
            }
        }
        text(line.bytes)
    }

    #[test]
    fn a_line_can_be_corrected() {
        assert_eq!(typed(b"abc\nd").unwrap(), "abc");
        assert_eq!(typed(b"abx\x7fc\r").unwrap(), "abc");
        assert_eq!(typed("aö\u{7f}\u{7f}\u{7f}b\n".as_bytes()).unwrap(), "b");
        assert_eq!(typed(b"wrong\x15abc\x04").unwrap(), "abc");
    }

    #[test]
    fn an_interrupted_or_malformed_line_is_an_error() {
        assert_eq!(typed(b"abc\x03").unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert_eq!(typed(b"\xff\n").unwrap_err().to_string(), "the value is not UTF-8");
    }

    #[test]
    fn a_long_line_reaches_its_limit() {
        assert_eq!(typed(b"0123456789\n").unwrap(), "01234567");
    }
}
