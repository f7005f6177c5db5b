//! Images in the output of a terminal: the graphics protocol of kitty, and the inline images of iTerm2.
//!
//! The bytes come from a server. They are encoded here, so that nothing in them can end the escape sequence.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::settings::ImageProtocol;

/// Largest image that is shown. A terminal keeps it in memory, and larger ones are for a viewer.
const MAX_IMAGE_BYTES: usize = 4 * 1024 * 1024;

/// Largest width and height of a PNG that is shown: a small file can have any size on the screen.
const MAX_IMAGE_PIXELS: u32 = 8_192;

/// Bytes of base64 in one escape sequence, the limit of kitty's protocol.
const CHUNK_BYTES: usize = 4_096;

/// Width of a column in pixels, at least. A wider image is scaled to the width of the terminal.
const COLUMN_PIXELS: usize = 6;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Formats that iTerm2 shows, beside PNG.
const OTHER_FORMATS: &[&[u8]] = &[b"\xff\xd8\xff", b"GIF87a", b"GIF89a"];

/// The escape sequences that show an image, in a terminal with so many columns; `None` if the terminal cannot show it.
/// The format is that of the bytes, whatever the server says.
pub(super) fn encode(protocol: ImageProtocol, bytes: &[u8], columns: usize) -> Option<String> {
    let size = png_size(bytes);
    let is_too_large = |(width, height)| width > MAX_IMAGE_PIXELS || height > MAX_IMAGE_PIXELS;
    if bytes.len() > MAX_IMAGE_BYTES || size.is_some_and(is_too_large) {
        return None;
    }
    let encoded = BASE64_STANDARD.encode(bytes);
    match (protocol, size) {
        (ImageProtocol::Kitty, Some((width, _))) => Some(kitty(&encoded, width, columns)),
        (ImageProtocol::Iterm2, Some(_)) => Some(iterm2(&encoded, bytes.len())),
        (ImageProtocol::Iterm2, None) => {
            let is_known = OTHER_FORMATS.iter().any(|start| bytes.starts_with(start));
            is_known.then(|| iterm2(&encoded, bytes.len()))
        }
        (ImageProtocol::Kitty, None) => None,
    }
}

/// The width and height of a PNG, which are at a fixed place.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(PNG)?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    (header.get(4..8)? == b"IHDR").then_some(())?;
    Some((number(8)?, number(12)?))
}

/// Transmits and shows a PNG, in chunks. `q=2`: the terminal does not reply, which would look like input of the user.
fn kitty(encoded: &str, width: u32, columns: usize) -> String {
    let is_wide = usize::try_from(width).unwrap_or(usize::MAX) > columns * COLUMN_PIXELS;
    let scale = if is_wide { format!(",c={columns}") } else { String::new() };
    let chunks: Vec<_> = encoded.as_bytes().chunks(CHUNK_BYTES).collect();
    let mut text = String::with_capacity(encoded.len() + chunks.len() * 16);
    for (at, chunk) in chunks.iter().enumerate() {
        let more = u8::from(at + 1 < chunks.len());
        let keys = match at {
            0 => format!("a=T,f=100,q=2{scale},m={more}"),
            _ => format!("q=2,m={more}"),
        };
        text += &format!("\u{1b}_G{keys};{}\u{1b}\\", String::from_utf8_lossy(chunk));
    }
    text + "\n"
}

fn iterm2(encoded: &str, size: usize) -> String {
    format!("\u{1b}]1337;File=inline=1;preserveAspectRatio=1;size={size}:{encoded}\u{7}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, length: usize) -> Vec<u8> {
        let mut bytes =
            [PNG, b"\0\0\0\x0dIHDR", &width.to_be_bytes(), &height.to_be_bytes()].concat();
        bytes.resize(bytes.len() + length, 0x1b);
        bytes
    }

    /// The payloads of the escape sequences.
    fn payloads(text: &str) -> String {
        let parts = text.split('\u{1b}').filter_map(|part| part.split_once([';', ':']));
        parts.map(|(_, data)| data.trim_end_matches(['\u{7}', '\n'])).collect()
    }

    #[test]
    fn kitty_gets_a_png_in_chunks() {
        let image = png(40, 10, 7_000);
        let text = encode(ImageProtocol::Kitty, &image, 80).unwrap();
        assert!(text.starts_with("\u{1b}_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"), "{text}");
        assert_eq!(text.matches("\u{1b}_G").count(), 3);
        assert!(text.ends_with("\u{1b}\\\n") && text.contains("\u{1b}_Gq=2,m=0;"), "{text}");
        assert_eq!(BASE64_STANDARD.decode(payloads(&text)).unwrap(), image);
        let wide = encode(ImageProtocol::Kitty, &png(4_000, 10, 10), 80).unwrap();
        assert!(wide.starts_with("\u{1b}_Ga=T,f=100,q=2,c=80,m=0;"), "{wide}");
    }

    #[test]
    fn iterm2_gets_other_formats_too() {
        for image in
            [png(4, 4, 10), b"GIF89a\x1b]0;title\x07".to_vec(), b"\xff\xd8\xff\x1b\\".to_vec()]
        {
            let text = encode(ImageProtocol::Iterm2, &image, 80).unwrap();
            // Nothing of the image is outside of base64.
            assert_eq!(text.matches(['\u{1b}', '\u{7}']).count(), 2, "{text:?}");
            let data = text.split_once(':').unwrap().1.trim_end().trim_end_matches('\u{7}');
            assert_eq!(BASE64_STANDARD.decode(data).unwrap(), image);
        }
    }

    #[test]
    fn what_a_terminal_cannot_show_is_not_sent() {
        let gif = b"GIF89a".to_vec();
        for (protocol, image) in [
            (ImageProtocol::Kitty, gif),
            (ImageProtocol::Kitty, png(9_000, 1, 10)),
            (ImageProtocol::Kitty, PNG.to_vec()),
            (ImageProtocol::Iterm2, png(1, 9_000, 10)),
            (ImageProtocol::Iterm2, png(1, 1, MAX_IMAGE_BYTES)),
            (ImageProtocol::Iterm2, b"<svg onload=x>".to_vec()),
            (ImageProtocol::Iterm2, Vec::new()),
        ] {
            assert_eq!(encode(protocol, &image, 80), None, "{protocol:?}");
        }
    }
}
