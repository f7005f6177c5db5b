//! Parses the text of a file of a host, of which only the servers matter.

use trunkline::config::{self, LoadedConfig};
use trunkline_hosts::edit::FileFormat;

/// The servers of a whole file. Other keys of a JSON file give no hints; files in other formats have none of ours.
pub(crate) fn parse_host_text(name: &str, text: &str, format: FileFormat) -> LoadedConfig {
    match format {
        _ if text.trim().is_empty() => LoadedConfig::default(),
        FileFormat::Json => config::parse_section(name, text, &[]),
        FileFormat::Toml | FileFormat::Yaml => config::parse(name, text),
    }
}
