//! Unit files for supervisors, which start the service instead of the first client.

use anyhow::{Context as _, Result};

use crate::arguments::Supervisor;
use crate::environment::ProcessEnv;
use crate::socket::runtime_dir::{RuntimeDir, shown};

/// The unit files for a supervisor, with the path of this program.
pub(crate) fn text(supervisor: Supervisor, environment: &ProcessEnv) -> Result<String> {
    let program = environment.program().context("the path of this program is not known")?;
    let program = shown(&program);
    let socket = shown(&RuntimeDir::of(environment)?.socket());
    Ok(match supervisor {
        Supervisor::Systemd => systemd(&program, &socket),
        Supervisor::Launchd => launchd(&program),
    })
}

fn systemd(program: &str, socket: &str) -> String {
    format!(
        "\
# ~/.config/systemd/user/trunkline.socket
[Unit]
Description=Socket of the Trunkline service

[Socket]
ListenStream={socket}
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target

# ~/.config/systemd/user/trunkline.service
[Unit]
Description=MCP servers of all hosts
Requires=trunkline.socket

[Service]
ExecStart={program} up --foreground --supervised
StandardInput=socket
StandardOutput=journal
StandardError=journal
KillMode=mixed

# Then: systemctl --user enable --now trunkline.socket
"
    )
}

fn launchd(program: &str) -> String {
    let program = program.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- ~/Library/LaunchAgents/io.trunkline.service.plist
     Then: launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/io.trunkline.service.plist -->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>io.trunkline.service</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
    <string>up</string>
    <string>--foreground</string>
    <string>--supervised</string>
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
</dict>
</plist>
"
    )
}
