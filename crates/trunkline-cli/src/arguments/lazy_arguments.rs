//! Arguments of a command that are described to clap only when it is used. Describing those of all commands took longer
//! than reading a configuration file.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// Arguments of a command.
#[derive(Debug)]
pub(crate) struct LazyArguments<A>(pub(crate) A);

impl<A> Deref for LazyArguments<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: Args> Args for LazyArguments<A> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| with_own_help(command, A::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| with_own_help(command, A::augment_args_for_update))
    }
}

/// Adds arguments to a command that has its own help, and global options.
fn with_own_help(command: Command, add: fn(Command) -> Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let global = command.get_arguments().count();
    // The documentation of the arguments replaces that of the command.
    own_first(add(command), global)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

/// Moves the global options, which are there before the others, to the end of the help.
fn own_first(command: Command, global: usize) -> Command {
    let mut sorted: Vec<_> = command.get_arguments().cloned().collect();
    sorted.rotate_left(global);
    let mut sorted = sorted.into_iter();
    command.mut_args(|argument| sorted.next().unwrap_or(argument))
}

impl<A: FromArgMatches> FromArgMatches for LazyArguments<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}
