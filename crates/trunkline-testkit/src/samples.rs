//! Configuration files of other hosts, from their documentation and designs.

/// A configuration file and its expected content.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The name of the file.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The names of its servers, sorted.
    pub servers: &'static [&'static str],
}

macro_rules! samples {
    ($($name:ident: $file:literal has $servers:expr;)*) => {
        $(
            #[doc = concat!("`", $file, "`.")]
            pub const $name: Sample = Sample {
                file: $file,
                text: include_str!(concat!("../samples/", $file)),
                servers: &$servers,
            };
        )*

        /// All samples.
        pub const ALL: &[Sample] = &[$($name),*];
    };
}

samples! {
    BOOCODE: "boocode.json" has ["codecontext", "context7"];
    TOOLLOOP: "toolloop.json" has ["repo"];
    DISPATCH: "dispatch.json" has ["chrome-devtools", "freecad", "remote-freecad"];
    DISPATCH_OPENCODE: "dispatch-opencode.json" has ["freecad"];
    CLAUDE_DESKTOP: "claude-desktop.json" has ["filesystem"];
    CLAUDE_CODE: "claude-code.json" has ["api", "db"];
    CURSOR: "cursor.json" has ["local", "remote"];
    VSCODE: "vscode.jsonc" has ["fs", "github"];
    WINDSURF: "windsurf.json" has ["github", "remote"];
    ZED: "zed.json" has ["local", "remote"];
    ZED_OLD: "zed-old.json" has ["custom", "object"];
    OPENCODE: "opencode.jsonc" has ["fs", "jira"];
    OPENCODE_V2: "opencode-v2.jsonc" has ["fs", "off"];
    GEMINI: "gemini.json" has ["http", "py"];
    CLINE: "cline.json" has ["srv", "web"];
    ROO: "roo.json" has ["srv"];
    AMAZON_Q: "amazonq.json" has ["git"];
    JETBRAINS: "jetbrains.json" has ["srv"];
    COPILOT: "copilot.json" has ["srv"];
    MCPORTER: "mcporter.json" has ["linear"];
}
