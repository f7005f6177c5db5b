//! `trunkline completions`: prints a completion script for a shell. The scripts ask the program for words, so that
//! servers, tools and their arguments are completed too.

use anyhow::Result;

use crate::arguments::{CompletionShell, CompletionsArguments};
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;

/// Bash splits words at `=` and `:`, so that the part before them must not be repeated.
const BASH: &str = r#"_trunkline() {
    local line="${COMP_LINE:0:COMP_POINT}" word candidate
    word="${line##* }"
    local prefix=""
    case "$word" in *[=:]*) prefix="${word%"${word##*[=:]}"}" ;; esac
    COMPREPLY=()
    while IFS= read -r candidate; do
        candidate="${candidate#"$prefix"}"
        case "$candidate" in *[[:space:]]*) printf -v candidate %q "$candidate" ;; esac
        COMPREPLY+=("$candidate")
    done < <(trunkline complete-line -- "$line" 2>/dev/null)
    case "${COMPREPLY[0]-}" in *=) compopt -o nospace ;; esac
}
complete -o default -F _trunkline trunkline
"#;

const ZSH: &str = r#"#compdef trunkline
_trunkline() {
    local -a words_found
    words_found=("${(@f)$(trunkline complete-line -- "${LBUFFER}" 2>/dev/null)}")
    words_found=("${(@)words_found:#}")
    if (( ${#words_found} == 0 )); then
        _files
        return
    fi
    local -a open closed
    open=("${(@M)words_found:#*=}")
    closed=("${(@)words_found:#*=}")
    (( ${#open} )) && compadd -S '' -- "${open[@]}"
    (( ${#closed} )) && compadd -- "${closed[@]}"
}
if [ "$funcstack[1]" = "_trunkline" ]; then
    _trunkline "$@"
else
    compdef _trunkline trunkline
fi
"#;

const FISH: &str = r#"function __trunkline_complete
    trunkline complete-line -- (commandline -cp) 2>/dev/null
end
complete -c trunkline -a '(__trunkline_complete)'
"#;

const POWERSHELL: &str = r#"Register-ArgumentCompleter -Native -CommandName trunkline -ScriptBlock {
    param($word, $ast, $position)
    $line = $ast.ToString()
    if ($position -lt $line.Length) { $line = $line.Substring(0, $position) } else { $line = $line.PadRight($position) }
    trunkline complete-line -- $line 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
"#;

pub(crate) fn run(arguments: &CompletionsArguments, terminal: &mut Terminal) -> Result<Outcome> {
    terminal.print(match arguments.shell {
        CompletionShell::Bash => BASH,
        CompletionShell::Zsh => ZSH,
        CompletionShell::Fish => FISH,
        CompletionShell::PowerShell => POWERSHELL,
    })?;
    Ok(Outcome::Good)
}
