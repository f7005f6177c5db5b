//! Fingerprints of server connection settings, to compare them without exposing them (CFG-12).

use std::fmt;
use std::hash::{Hash as _, Hasher};
use std::path::Path;

use ring::digest;

use super::model::{Server, Transport};
use super::oauth::OAuthMode;
use super::resolver::Resolver;
use super::secret::Secret;
use super::template::{Reference, ReferenceSource, Template};
use crate::hexadecimal::hexadecimal;

/// The fingerprint of a server's connection settings. Equal fingerprints mean the same program or
/// URL, with the same arguments, variables and headers. The settings cannot be derived from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Derives the fingerprint for a working directory, for a server that runs in that of its host.
    #[must_use]
    pub(crate) fn within(&self, folder: &Path) -> Self {
        let mut digester = Digester(digest::Context::new(&digest::SHA256));
        (self.0, folder).hash(&mut digester);
        digester.fingerprint()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Server {
    /// The fingerprint of its connection settings. References are hashed as written, not as
    /// resolved; those that depend on a directory are hashed with the directory.
    ///
    /// ```
    /// use trunkline::config;
    ///
    /// let loaded = config::parse("mcp.json", r#"{ "mcpServers": {
    ///     "one": { "command": "uvx", "args": ["mcp-server-time"] },
    ///     "two": { "command": "uvx", "args": ["mcp-server-time"], "access": "read-write" },
    ///     "three": { "command": "uvx", "args": ["mcp-server-git"] }
    /// } }"#);
    /// let of = |name| loaded.config.server(name).unwrap().fingerprint();
    /// assert_eq!(of("one"), of("two"));
    /// assert_ne!(of("one"), of("three"));
    /// ```
    pub fn fingerprint(&self) -> Fingerprint {
        let mut digester = Digester(digest::Context::new(&digest::SHA256));
        self.transport.hash(&mut digester);
        self.behaviour.protocol.as_str().hash(&mut digester);
        self.folders().hash(&mut digester);
        if let Transport::Stdio(_) = self.transport {
            self.behaviour.inherit_env.written().hash(&mut digester);
        }
        for template in self.templates() {
            for reference in template.references() {
                if let ReferenceSource::Input(id) = reference.target() {
                    self.inputs.get(id).hash(&mut digester);
                }
            }
        }
        digester.fingerprint()
    }

    /// The fingerprint with the values that references have for one client. Files and stores are the same
    /// for clients that name the same ones, and are not read.
    pub(crate) fn fingerprint_for(&self, client: &dyn Resolver) -> Fingerprint {
        let mut digester = Digester(digest::Context::new(&digest::SHA256));
        self.fingerprint().hash(&mut digester);
        for reference in self.templates().flat_map(Template::references) {
            let value = match reference.target() {
                ReferenceSource::Variable(name) => client.variable(name),
                ReferenceSource::Input(id) => client.input(id),
                _ => None,
            };
            value.as_ref().map(Secret::expose).hash(&mut digester);
        }
        // A remote server may have a login, which is in the store as well.
        let mut references = self.templates().flat_map(Template::references);
        if references.any(is_secret) || self.oauth_settings().is_some() {
            client.secrets_identity().hash(&mut digester);
        }
        let has_workspace = !self.provenance.origin.workspace().as_os_str().is_empty();
        let directory = (!has_workspace).then(|| client.working_directory());
        (client.user_home(), directory).hash(&mut digester);
        digester.fingerprint()
    }

    /// Whether connecting needs the host to resolve references.
    pub(crate) fn has_references(&self) -> bool {
        let has_file =
            matches!(&self.transport, Transport::Stdio(stdio) if stdio.env_file.is_some());
        has_file || self.templates().any(|template| template.references().next().is_some())
    }

    /// Whether it runs in the working directory of its host.
    pub(crate) fn runs_in_host_directory(&self) -> bool {
        matches!(&self.transport, Transport::Stdio(stdio) if stdio.cwd.is_none())
    }

    /// The directories that its settings depend on: the workspace, and the directory of the file.
    fn folders(&self) -> [Option<&Path>; 2] {
        let mut refers_to_workspace = false;
        let mut refers_to_files = false;
        for reference in self.templates().flat_map(Template::references) {
            match reference.target() {
                ReferenceSource::WorkspaceFolder | ReferenceSource::WorkspaceFolderName => {
                    refers_to_workspace = true;
                }
                ReferenceSource::File(_) => refers_to_files = true,
                _ => {}
            }
        }
        if let Transport::Stdio(stdio) = &self.transport {
            refers_to_workspace |= stdio.cwd.as_ref().is_some_and(|cwd| !is_absolute(cwd));
            refers_to_files |= stdio.env_file.is_some();
        }
        let origin = &self.provenance.origin;
        [refers_to_workspace.then(|| origin.workspace()), refers_to_files.then(|| origin.folder())]
    }

    /// All values of its transport.
    pub(super) fn templates(&self) -> Box<dyn Iterator<Item = &Template> + '_> {
        match &self.transport {
            Transport::Stdio(stdio) => {
                let env = stdio.env.iter().filter_map(|(_, value)| value.as_ref());
                let one = [Some(&stdio.command), stdio.cwd.as_ref(), stdio.env_file.as_ref()];
                Box::new(one.into_iter().flatten().chain(&stdio.args).chain(env))
            }
            Transport::Remote(remote) => {
                let headers = remote.headers.iter().map(|(_, value)| value);
                let command = remote.headers_command.iter().flatten();
                let values = std::iter::once(&remote.url).chain(headers).chain(command);
                match &remote.oauth {
                    OAuthMode::Disabled => Box::new(values),
                    OAuthMode::Enabled(settings) => Box::new(values.chain(settings.values())),
                }
            }
        }
    }
}

fn is_secret(reference: &Reference) -> bool {
    matches!(reference.target(), ReferenceSource::Secret(..))
}

fn is_absolute(directory: &Template) -> bool {
    directory.as_literal().is_some_and(|text| Path::new(text).is_absolute())
}

/// Adapts SHA-256 to [`Hasher`]. A compiler with another `Hash` layout yields other fingerprints;
/// entries cached under the old ones are then fetched again.
struct Digester(digest::Context);

impl Digester {
    fn fingerprint(self) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Fingerprint(bytes)
    }
}

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("invariant: only the whole digest is asked for")
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::parse;

    fn same(left: &str, right: &str) -> bool {
        let of = |entry: &str| {
            let loaded = parse("mcp.json", format!(r#"{{ "mcpServers": {{ "s": {entry} }} }}"#));
            loaded.config.server("s").unwrap().fingerprint()
        };
        of(left) == of(right)
    }

    #[test]
    fn fingerprint_covers_the_target_and_not_the_rules() {
        let plain = r#"{ "command": "a", "args": ["b", "c"], "env": { "K": "v" } }"#;
        for other in [
            r#"{ "command": "a", "args": ["b", "c"], "env": { "K": "v" }, "trust": "untrusted" }"#,
            r#"{ "command": ["a", "b", "c"], "environment": { "K": "v" }, "denyTools": ["x"] }"#,
        ] {
            assert!(same(plain, other), "{other}");
        }
        for other in [
            r#"{ "command": "a", "args": ["bc"], "env": { "K": "v" } }"#,
            r#"{ "command": "a", "args": ["b", "c"], "env": { "K": "w" } }"#,
            r#"{ "command": "a", "args": ["b", "c"], "env": { "K": "v" }, "protocol": "legacy" }"#,
            r#"{ "command": "a", "args": ["b", "c"], "env": { "K": "v" }, "cwd": "x" }"#,
            r#"{ "url": "http://a" }"#,
        ] {
            assert!(!same(plain, other), "{other}");
        }
    }
}
