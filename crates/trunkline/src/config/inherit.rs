//! Environment variables that a server inherits from the host (CON-7).

use std::borrow::Cow;

use super::redact::{RedactionInput, argument, is_path, is_secret_name};
use super::secret::{MASK, Secret};
use crate::name::NamePattern;

/// Variables that every server inherits if the host has them, grouped by purpose: programs need
/// them to find executables, files and the network. None is a credential. `*` matches any
/// characters; matching is case-insensitive.
const INHERITED: &[(&str, &[&str])] = &[
    (
        "paths and identity",
        &[
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "HOSTNAME",
            "TMPDIR",
            "TMP",
            "TEMP",
            "TERM",
            "COLORTERM",
            "NO_COLOR",
            "MANPATH",
            "INFOPATH",
            "LD_LIBRARY_PATH",
            "DYLD_LIBRARY_PATH",
            "DYLD_FALLBACK_LIBRARY_PATH",
            "PKG_CONFIG_PATH",
        ],
    ),
    ("locale", &["LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR"]),
    (
        "XDG directories",
        &["XDG_*_HOME", "XDG_*_DIRS", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP"],
    ),
    ("proxies", &["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"]),
    (
        "CA bundles",
        &[
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "AWS_CA_BUNDLE",
            "PIP_CERT",
            "DENO_CERT",
            "GIT_SSL_CAINFO",
            "CARGO_HTTP_CAINFO",
            "NIX_SSL_CERT_FILE",
        ],
    ),
    (
        "Node.js",
        &[
            "NODE_PATH",
            "NODE_OPTIONS",
            "NODE_ENV",
            "NODE_USE_ENV_PROXY",
            "NODE_USE_SYSTEM_CA",
            "NPM_CONFIG_CACHE",
            "NPM_CONFIG_PREFIX",
            "NPM_CONFIG_REGISTRY",
            "NPM_CONFIG_USERCONFIG",
            "NPM_CONFIG_GLOBALCONFIG",
            "NPM_CONFIG_OFFLINE",
            "NPM_CONFIG_PREFER_OFFLINE",
            "NPM_CONFIG_CAFILE",
            "NPM_CONFIG_PROXY",
            "NPM_CONFIG_HTTPS_PROXY",
            "NPM_CONFIG_NOPROXY",
            "NVM_DIR",
            "NVM_BIN",
            "NVM_INC",
            "FNM_DIR",
            "FNM_MULTISHELL_PATH",
            "VOLTA_HOME",
            "N_PREFIX",
            "PNPM_HOME",
            "YARN_CACHE_FOLDER",
            "BUN_INSTALL",
            "BUN_INSTALL_CACHE_DIR",
            "DENO_DIR",
            "DENO_INSTALL",
            "COREPACK_HOME",
            "PLAYWRIGHT_BROWSERS_PATH",
            "PUPPETEER_CACHE_DIR",
            "PUPPETEER_EXECUTABLE_PATH",
            "CHROME_PATH",
            "CHROME_BIN",
        ],
    ),
    (
        "Python",
        &[
            "UV_CACHE_DIR",
            "UV_CONFIG_FILE",
            "UV_DEFAULT_INDEX",
            "UV_EXTRA_INDEX_URL",
            "UV_HTTP_TIMEOUT",
            "UV_INDEX",
            "UV_INDEX_URL",
            "UV_INSTALL_DIR",
            "UV_LINK_MODE",
            "UV_NATIVE_TLS",
            "UV_SYSTEM_CERTS",
            "UV_NO_CACHE",
            "UV_OFFLINE",
            "UV_PYTHON",
            "UV_PYTHON_DOWNLOADS",
            "UV_PYTHON_INSTALL_DIR",
            "UV_PYTHON_INSTALL_MIRROR",
            "UV_PYTHON_PREFERENCE",
            "UV_SYSTEM_PYTHON",
            "UV_TOOL_BIN_DIR",
            "UV_TOOL_DIR",
            "PIP_CACHE_DIR",
            "PIP_CONFIG_FILE",
            "PIP_EXTRA_INDEX_URL",
            "PIP_INDEX_URL",
            "PIP_PROXY",
            "PIPX_BIN_DIR",
            "PIPX_HOME",
            "POETRY_CACHE_DIR",
            "POETRY_HOME",
            "PYENV_ROOT",
            "PYENV_VERSION",
            "PYTHONHOME",
            "PYTHONIOENCODING",
            "PYTHONPATH",
            "PYTHONUNBUFFERED",
            "PYTHONUSERBASE",
            "PYTHONUTF8",
            "VIRTUAL_ENV",
            "CONDA_DEFAULT_ENV",
            "CONDA_EXE",
            "CONDA_PREFIX",
            "MAMBA_ROOT_PREFIX",
        ],
    ),
    (
        "other runtimes",
        &[
            "CARGO_HOME",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "GOBIN",
            "GOCACHE",
            "GOFLAGS",
            "GOMODCACHE",
            "GONOPROXY",
            "GONOSUMDB",
            "GOPATH",
            "GOPRIVATE",
            "GOPROXY",
            "GOROOT",
            "JAVA_HOME",
            "JDK_HOME",
            "MAVEN_HOME",
            "M2_HOME",
            "GRADLE_HOME",
            "GRADLE_USER_HOME",
            "SDKMAN_DIR",
            "DOTNET_ROOT",
            "DOTNET_CLI_HOME",
            "NUGET_PACKAGES",
            "GEM_HOME",
            "GEM_PATH",
            "BUNDLE_PATH",
            "RBENV_ROOT",
            "COMPOSER_HOME",
            "ASDF_DIR",
            "ASDF_DATA_DIR",
            "MISE_DATA_DIR",
            "MISE_CACHE_DIR",
            "MISE_CONFIG_DIR",
            "HOMEBREW_PREFIX",
            "NIX_PATH",
            "NIX_PROFILES",
            "LOCALE_ARCHIVE",
        ],
    ),
    (
        "settings of command line tools",
        &[
            "AWS_PROFILE",
            "AWS_DEFAULT_PROFILE",
            "AWS_REGION",
            "AWS_DEFAULT_REGION",
            "AWS_CONFIG_FILE",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_SDK_LOAD_CONFIG",
            "KUBECONFIG",
            "DOCKER_HOST",
            "DOCKER_CONTEXT",
            "DOCKER_CONFIG",
            "DOCKER_CERT_PATH",
            "DOCKER_TLS_VERIFY",
            "CONTAINER_HOST",
            "CLOUDSDK_CONFIG",
            "CLOUDSDK_ACTIVE_CONFIG_NAME",
            "CLOUDSDK_CORE_PROJECT",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "AZURE_CONFIG_DIR",
            "GIT_CONFIG_GLOBAL",
            "GIT_SSH",
            "GIT_SSH_COMMAND",
            "GH_CONFIG_DIR",
            "GH_HOST",
        ],
    ),
    ("display", &["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"]),
    ("agent sockets", &["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GNUPGHOME", "DBUS_SESSION_BUS_ADDRESS"]),
    (
        "Windows",
        &[
            "ALLUSERSPROFILE",
            "APPDATA",
            "COMMONPROGRAMFILES*",
            "COMPUTERNAME",
            "COMSPEC",
            "HOMEDRIVE",
            "HOMEPATH",
            "LOCALAPPDATA",
            "NUMBER_OF_PROCESSORS",
            "OS",
            "PATHEXT",
            "PROCESSOR_ARCHITECTURE",
            "PROGRAMDATA",
            "PROGRAMFILES*",
            "PROGRAMW6432",
            "PSMODULEPATH",
            "PUBLIC",
            "SYSTEMDRIVE",
            "SYSTEMROOT",
            "USERDOMAIN",
            "USERNAME",
            "USERPROFILE",
            "WINDIR",
            "WSLENV",
            "WSL_DISTRO_NAME",
            "WSL_INTEROP",
        ],
    ),
];

/// Variables that a server inherits from the host in addition to the default ones.
///
/// ```
/// use trunkline::config::InheritEnv;
/// use trunkline::name::NamePattern;
///
/// let patterns = ["AWS_*", "!AWS_SECRET_*"].map(|it| NamePattern::new(it).unwrap());
/// let inherit = InheritEnv::Matching(patterns.to_vec());
/// assert!(inherit.passes("PATH") && inherit.passes("https_proxy"));
/// assert!(inherit.passes("AWS_SESSION_TOKEN") && !inherit.passes("AWS_SECRET_ACCESS_KEY"));
/// assert!(!InheritEnv::default().passes("AWS_SESSION_TOKEN"));
/// assert!(InheritEnv::Everything.passes("AWS_SECRET_ACCESS_KEY"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InheritEnv {
    /// Variables that match the patterns; the last match wins. An empty list adds none.
    Matching(Vec<NamePattern>),
    /// All variables of the host.
    Everything,
}

impl Default for InheritEnv {
    fn default() -> Self {
        Self::Matching(Vec::new())
    }
}

impl InheritEnv {
    /// Returns whether a server inherits a variable of this name.
    pub fn passes(&self, name: &str) -> bool {
        self.passes_with(Inheritance::of(name), || name.into())
    }

    /// Returns whether a server inherits a variable with this [`Inheritance`].
    pub(crate) fn passes_with<'n>(
        &self,
        inheritance: Inheritance,
        name: impl FnOnce() -> Cow<'n, str>,
    ) -> bool {
        match inheritance {
            Inheritance::Always => true,
            Inheritance::IfRequested => self.names(name),
            Inheritance::Never => false,
        }
    }

    /// Returns whether it adds a variable of this name to the default ones.
    fn names<'n>(&self, name: impl FnOnce() -> Cow<'n, str>) -> bool {
        match self {
            Self::Everything => true,
            Self::Matching(patterns) if patterns.is_empty() => false,
            Self::Matching(patterns) => {
                let name = name();
                let last = patterns.iter().rev().find(|pattern| pattern.matches(&name));
                last.is_some_and(|pattern| !pattern.excludes())
            }
        }
    }

    /// Its patterns, as written in a file.
    pub(crate) fn written(&self) -> Vec<&str> {
        match self {
            Self::Everything => vec!["*"],
            Self::Matching(patterns) => patterns.iter().map(NamePattern::as_str).collect(),
        }
    }
}

/// Whether servers inherit a variable of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inheritance {
    Always,
    /// By those with `inheritEnv: true`, or a pattern that matches it.
    IfRequested,
    Never,
}

impl Inheritance {
    pub(crate) fn of(name: &str) -> Self {
        match () {
            () if is_key_of_secrets(name) => Self::Never,
            () if is_inherited_by_all(name) => Self::Always,
            () => Self::IfRequested,
        }
    }
}

/// Names and patterns of the variables that every server inherits, by purpose.
pub fn inherited_variables() -> &'static [(&'static str, &'static [&'static str])] {
    INHERITED
}

/// Variables with the key of all stored secrets. No server inherits them, also with `inheritEnv: true`.
const KEYS_OF_SECRETS: [&str; 2] = ["TRUNKLINE_SECRETS_PASSPHRASE", "TRUNKLINE_SECRETS_KEY"];

fn is_key_of_secrets(name: &str) -> bool {
    KEYS_OF_SECRETS.iter().any(|key| name.eq_ignore_ascii_case(key))
}

fn is_inherited_by_all(name: &str) -> bool {
    // Most patterns start with another letter.
    let first = |text: &str| text.as_bytes().first().map(u8::to_ascii_uppercase);
    let own_first = first(name);
    let patterns = INHERITED.iter().flat_map(|(_, patterns)| *patterns);
    let mut patterns = patterns.filter(|pattern| first(pattern) == own_first);
    patterns.any(|pattern| match pattern.split_once('*') {
        None => name.eq_ignore_ascii_case(pattern),
        Some((start, end)) => {
            let name = name.to_ascii_uppercase();
            name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
        }
    })
}

/// The value of an inherited variable for display, with secrets masked.
pub fn shown_variable(name: &str, value: &str) -> String {
    if is_secret_variable(name, value) {
        return MASK.to_owned();
    }
    let shown = |it: &str| argument(&RedactionInput { text: it.to_owned(), judged: it.to_owned() });
    // A list of folders, such as PATH: each is judged by itself.
    let is_folder = |it: &str| it.is_empty() || it.starts_with(['/', '.', '~']);
    match value.contains(':') && !value.contains("://") && value.split(':').all(is_folder) {
        true => value.split(':').map(shown).collect::<Vec<_>>().join(":"),
        false => shown(value),
    }
}

/// Returns the secrets in an inherited variable, which are masked in the stderr output of the
/// server: the value of a credential, or the user and password in a URL.
pub(crate) fn inherited_secrets(name: &str, value: &str) -> Vec<Secret> {
    if is_secret_variable(name, value) {
        return vec![Secret::new(value)];
    }
    let Some((_, rest)) = value.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let Some((user, _)) = authority.rsplit_once('@') else { return Vec::new() };
    let password = user.split_once(':').map(|(_, password)| password);
    [Some(user), password]
        .into_iter()
        .flatten()
        .filter(|it| !it.is_empty())
        .map(Secret::new)
        .collect()
}

fn is_secret_variable(name: &str, value: &str) -> bool {
    !value.is_empty() && !is_inherited_by_all(name) && is_secret_name(name) && !is_path(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_inherits_the_key_of_secrets() {
        for name in KEYS_OF_SECRETS {
            assert!(!InheritEnv::Everything.passes(name));
        }
        assert!(!InheritEnv::Everything.passes("trunkline_secrets_key"));
        assert!(InheritEnv::Everything.passes("TRUNKLINE_SECRETS_KEY_FILE"));
    }

    #[test]
    fn necessary_variables_are_inherited_without_credentials() {
        let default = InheritEnv::default();
        for name in [
            "PATH",
            "HTTPS_PROXY",
            "https_proxy",
            "AWS_PROFILE",
            "KUBECONFIG",
            "SSH_AUTH_SOCK",
            "UV_CACHE_DIR",
            "LC_ALL",
            "XDG_STATE_HOME",
            "npm_config_cache",
            "DISPLAY",
        ] {
            assert!(default.passes(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "npm_config__authToken",
            "UV_PUBLISH_TOKEN",
            "UV_INDEX_PRIVATE_PASSWORD",
            "MISE_GITHUB_TOKEN",
            "XDG_SESSION_COOKIE",
            "TRUNKLINE_CONFIG_JSON",
            "PGPASSWORD",
            "DATABASE_URL",
        ] {
            assert!(!default.passes(name), "{name}");
        }
        // Related to credentials, but not secret: a socket, a path, a bus address.
        let about = ["SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "DBUS_SESSION_BUS_ADDRESS"];
        for name in INHERITED.iter().flat_map(|(_, names)| *names) {
            assert!(!is_secret_name(name) || about.contains(name), "{name}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let proxy = "http://ann:hunter2hunter2@proxy.example:8080";
        let shown = shown_variable("HTTPS_PROXY", proxy);
        assert!(shown.contains("proxy.example:8080") && !shown.contains("hunter2"), "{shown}");
        let secrets = inherited_secrets("HTTPS_PROXY", proxy);
        let secrets: Vec<_> = secrets.iter().map(Secret::expose).collect();
        assert_eq!(secrets, ["ann:hunter2hunter2", "hunter2hunter2"]);
        assert!(inherited_secrets("HTTP_PROXY", "http://proxy.example:8080").is_empty());
        assert_eq!(shown_variable("GITHUB_TOKEN", "abc"), MASK);
        let path = "/usr/local/bin:/usr/bin:~/bin:./node_modules/.bin:";
        assert_eq!(shown_variable("PATH", path), path);
        let path = "/usr/bin:/srv/ghp_0123456789abcdef0123456789abcdef0123:/bin";
        assert_eq!(shown_variable("PATH", path), format!("/usr/bin:{MASK}:/bin"));
        assert_eq!(shown_variable("SSH_AUTH_SOCK", "/run/user/1000/agent"), "/run/user/1000/agent");
        assert_eq!(inherited_secrets("GITHUB_TOKEN", "abc").len(), 1);
    }
}
