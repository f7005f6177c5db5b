//! Finds a Trunkline command line inside the command of a server: after `env`, in `sh -c`, and
//! behind other launchers.

use std::path::{Path, PathBuf};

/// Programs that run the rest of their arguments as a command.
const LAUNCHERS: [&str; 9] =
    ["command", "doas", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo"];

/// Shells, which run the script after `-c`.
const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// Words before the program that change its configuration or working directory.
const CHANGES: [&str; 5] = ["-C", "--chdir", "cd", "popd", "pushd"];

/// The arguments of Trunkline, if a command runs it. `None` if it runs with other variables or in
/// another directory, because its configuration is not known then.
pub(crate) fn trunkline_arguments(
    command: &str,
    args: &[&str],
    own_program: Option<&Path>,
) -> Option<Vec<String>> {
    let is_own = |word: &str| own_program.is_some_and(|own| own == Path::new(word));
    let is_trunkline = |word: &str| stem(word) == Some("trunkline") || is_own(word);
    if is_trunkline(command) {
        return Some(args.iter().map(ToString::to_string).collect());
    }
    let program = stem(command)?;
    let words: Vec<String> = if SHELLS.contains(&program) {
        let script = args.iter().skip_while(|arg| !is_command_option(arg)).nth(1)?;
        shell_words(script)
    } else if LAUNCHERS.contains(&program) {
        args.iter().map(ToString::to_string).collect()
    } else {
        return None;
    };
    let mut before = words.iter().take_while(|word| !is_trunkline(word));
    if before.any(|word| changes_configuration(word)) {
        return None;
    }
    let mut words = words.into_iter().skip_while(|word| !is_trunkline(word));
    match words.next() {
        Some(_) => Some(words.collect()),
        // A launcher in front of a shell, or the other way round.
        None => nested_shell(args, own_program),
    }
}

/// The same for a shell that a launcher runs: `nohup sh -c 'trunkline serve --stdio'`.
fn nested_shell(words: &[&str], own_program: Option<&Path>) -> Option<Vec<String>> {
    let is_shell = |word: &&str| stem(word).is_some_and(|it| SHELLS.contains(&it));
    let place = words.iter().position(is_shell)?;
    let (before, shell) = words.split_at_checked(place)?;
    let (shell, args) = shell.split_first()?;
    if before.iter().any(|word| changes_configuration(word)) {
        return None;
    }
    trunkline_arguments(shell, args, own_program)
}

/// The file in the `--config` option.
pub(crate) fn config_argument(args: &[String]) -> Option<PathBuf> {
    path_argument("--config", args)
}

/// The folder after `--project`, if it is given.
pub(crate) fn project_argument(args: &[String]) -> Option<PathBuf> {
    path_argument("--project", args)
}

fn path_argument(option: &str, args: &[String]) -> Option<PathBuf> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == option {
            return args.next().map(PathBuf::from);
        }
        if let Some(path) = arg.strip_prefix(option).and_then(|it| it.strip_prefix('=')) {
            return Some(path.into());
        }
    }
    None
}

fn stem(word: &str) -> Option<&str> {
    Path::new(word).file_stem()?.to_str()
}

/// Whether an argument of a shell is `-c`, possibly combined with other letters: `-lc`.
fn is_command_option(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--") && arg.ends_with('c')
}

fn changes_configuration(word: &str) -> bool {
    let is_variable = word.starts_with("TRUNKLINE_") && word.contains('=');
    CHANGES.contains(&word) || word.starts_with("--chdir=") || is_variable
}

/// The words of a script, split without a full shell parser, up to the end of the first command
/// that runs Trunkline.
fn shell_words(script: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in script.split(['\n', ';', '&', '|', '(', ')']) {
        let of_part = part.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
        let of_part: Vec<_> = of_part.filter(|word| !word.is_empty()).collect();
        let runs = of_part.iter().any(|word| stem(word) == Some("trunkline"));
        words.extend(of_part);
        if runs {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &[&str]) -> Option<String> {
        let (command, args) = line.split_first().unwrap();
        trunkline_arguments(command, args, Some(Path::new("/opt/own"))).map(|args| args.join(" "))
    }

    #[test]
    fn the_command_line_is_found_behind_launchers_and_shells() {
        let serve = Some("serve --stdio".to_owned());
        for line in [
            &["trunkline", "serve", "--stdio"][..],
            &["/opt/own", "serve", "--stdio"],
            &["env", "-i", "PATH=/bin", "/usr/bin/trunkline", "serve", "--stdio"],
            &["env", "-u", "TRUNKLINE_CHAIN", "trunkline", "serve", "--stdio"],
            &["sh", "-c", "trunkline serve --stdio"],
            &["bash", "-lc", "set -e; exec 'trunkline' serve --stdio; echo cd x"],
            &["nohup", "nice", "trunkline", "serve", "--stdio"],
            &["nohup", "sh", "-c", "exec trunkline serve --stdio"],
        ] {
            assert_eq!(found(line), serve, "{line:?}");
        }
    }

    #[test]
    fn other_programs_folders_and_variables_are_left_alone() {
        for line in [
            &["python3", "server.py", "trunkline", "serve"][..],
            &["sh", "-c", "cd other && trunkline serve --stdio"],
            &["sh", "server.sh"],
            &["env", "TRUNKLINE_CONFIG=other.json", "trunkline", "serve"],
            &["env", "-C", "/other", "trunkline", "serve"],
            &["sh", "-c"],
            &["env"],
            &["sh"],
        ] {
            assert_eq!(found(line), None, "{line:?}");
        }
    }
}
