//! The files of the page, part of the program.

use super::address::{FNV_OFFSET, fnv1a};

/// A file that the page loads.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its name in `/assets/<name>`.
    pub(crate) name: &'static str,
    /// Its `Content-Type`.
    pub(crate) content_type: &'static str,
    /// Its content.
    pub(crate) bytes: &'static [u8],
    /// Names the content in addresses, so that browsers may keep it for ever.
    pub(crate) hash: u64,
}

impl Asset {
    const fn new(name: &'static str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, content_type, bytes, hash: hash(bytes) }
    }

    /// The address that the page uses.
    pub(crate) fn address(&self) -> String {
        format!("/assets/{}?v={:016x}", self.name, self.hash)
    }
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// All files.
pub(crate) static ASSETS: &[Asset] = &[
    STYLE,
    // In the order in which they must load: the extensions register themselves with htmx, and htmx starts when
    // the document is complete. Without `defer`, hx-csp is always there before htmx reads an attribute.
    HTMX, HX_CSP, HX_SSE, SCRIPT,
];

pub(super) const STYLE: Asset =
    Asset::new("trunkline.css", CSS, include_bytes!("../../assets/trunkline.css"));
pub(super) const HTMX: Asset =
    Asset::new("htmx.js", JAVASCRIPT, include_bytes!("../../assets/htmx-4.0.0.min.js"));
pub(super) const HX_CSP: Asset =
    Asset::new("hx-csp.js", JAVASCRIPT, include_bytes!("../../assets/hx-csp-4.0.0.min.js"));
pub(super) const HX_SSE: Asset =
    Asset::new("hx-sse.js", JAVASCRIPT, include_bytes!("../../assets/hx-sse-4.0.0.min.js"));
pub(super) const SCRIPT: Asset =
    Asset::new("trunkline.js", JAVASCRIPT, include_bytes!("../../assets/trunkline.js"));

/// The file with a name.
pub(crate) fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

const fn hash(bytes: &[u8]) -> u64 {
    let mut hash = FNV_OFFSET;
    let mut index = 0;
    while index < bytes.len() {
        hash = fnv1a(hash, bytes[index]);
        index += 1;
    }
    hash
}
