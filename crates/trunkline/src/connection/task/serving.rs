//! A server that runs: what comes from it, what goes to it, and when it is not needed any more.

use std::sync::Arc;

use tokio::time::Instant;

use super::relisting::Relisting;
use super::subscribing::{Step, Subscription};
use super::{Command, End, MAX_PENDING, Task, refuse, too_many};
use crate::connection::handshake::Opened;
use crate::connection::lists::ToolList;
use crate::connection::memory::Spoken;
use crate::connection::session::{Answer, Event, Session, at};
use crate::message::Notification;

/// What goes on with a server beside the requests of others.
struct Chores {
    relisting: Relisting,
    subscription: Subscription,
    spoken: Spoken,
}

impl Task {
    /// Serves until the server ends, nobody needs it, or we are told to end.
    pub(super) async fn serve(&mut self, opened: Opened, waiting: Vec<Command>) -> End {
        let Opened { mut session, described, spoken, tools } = opened;
        let subscription = Subscription::wanted_of(&session, &described);
        let mut chores = Chores { relisting: Relisting::default(), subscription, spoken };
        self.shadow.ready(&session, &described);
        self.shadow.noticed(&session);
        self.took_list(&mut session, chores.spoken, tools);
        for command in waiting {
            self.obey(&mut session, &mut chores, command);
        }
        let end = self.run_session(&mut session, &mut chores).await;
        self.shadow.noticed(&session);
        session.close(self.shutdown_patience()).await;
        end
    }

    async fn run_session(&mut self, session: &mut Session, chores: &mut Chores) -> End {
        loop {
            let idle_at = self.idle_at(session, chores);
            tokio::select! {
                event = session.next() => match event {
                    Event::Ended(error) => return End::Server(error),
                    Event::Told(notification) => self.told(session, chores, notification),
                    Event::Noise => self.shadow.noticed(session),
                    Event::Quiet => {}
                },
                answer = chores.relisting.answer() => self.took_page(session, chores, answer),
                step = chores.subscription.next() => self.subscribe(session, chores, step),
                Some(id) = self.abandoned.recv() => session.abandon(id),
                command = self.commands.recv() => match command {
                    Some(command) => {
                        if let Some(close) = self.obey_all(session, chores, command) {
                            return End::Told(Some(close));
                        }
                    }
                    None => return End::Told(None),
                },
                () = at(idle_at) => return End::Idle,
            }
        }
    }

    /// When the server is stopped because nobody needs it (CON-14).
    fn idle_at(&self, session: &Session, chores: &Chores) -> Option<Instant> {
        let patience = self.server.behaviour.idle_timeout?;
        let since = session.idle_since().filter(|_| !chores.relisting.is_on())?;
        since.checked_add(patience)
    }

    /// What the server says of its own accord.
    fn told(&self, session: &mut Session, chores: &mut Chores, notification: Notification) {
        if &*notification.method == "notifications/tools/list_changed" {
            self.shadow.tools_are_stale();
            self.relist(session, chores);
        }
        // Nobody may be listening.
        let _ = self.told.send(notification);
    }

    /// Obeys what has been commanded so far, so that what is ready together is written together.
    /// Returns the command to close, if that is among it.
    fn obey_all(
        &mut self,
        session: &mut Session,
        chores: &mut Chores,
        first: Command,
    ) -> Option<Command> {
        let mut next = Some(first);
        while let Some(command) = next {
            if matches!(command, Command::Close(_)) {
                return Some(command);
            }
            self.obey(session, chores, command);
            next = self.commands.try_recv().ok();
        }
        None
    }

    fn obey(&self, session: &mut Session, chores: &mut Chores, command: Command) {
        match command {
            Command::Connect(done) => {
                let _ = done.send(Ok(()));
            }
            Command::Ask(_) if session.pending() >= MAX_PENDING => refuse(command, &too_many()),
            Command::Ask(asked) => {
                self.shadow.called();
                session.ask(asked);
            }
            Command::Respond { session: number, response } => session.respond(number, response),
            Command::Refresh(done) if self.shadow.listed().is_fresh() => {
                let _ = done.send(Ok(()));
            }
            Command::Refresh(done) => {
                chores.relisting.wait(done);
                self.relist(session, chores);
            }
            // Taken by whoever received it.
            Command::Close(_) => {}
        }
    }

    /// Takes a list of tools that is complete, for everybody and for the next time.
    fn took_list(&self, session: &mut Session, spoken: Spoken, list: ToolList) {
        let ttl = list.ttl.unwrap_or(self.server.behaviour.tools_ttl);
        session.set_mirrored(list.mirrored.clone());
        let record = self.options.memory().record(&self.fingerprint, spoken, &list.tools);
        self.shadow.tools(list, ttl);
        let Some(record) = record else { return };
        let shadow = Arc::clone(&self.shadow);
        tokio::task::spawn_blocking(move || {
            let failure = record.write().err().map(|error| error.kind().to_string().into());
            shadow.not_remembered(failure);
        });
    }

    /// Takes a page of the list, and perhaps all of it.
    fn took_page(&self, session: &mut Session, chores: &mut Chores, answer: Answer) {
        let asking = self.asking();
        if let Some(list) = chores.relisting.took(session, asking, answer) {
            match list {
                Ok(list) => self.took_list(session, chores.spoken, list),
                // The old list is better than none.
                Err(error) => self.shadow.trouble(error.of(&self.server.name)),
            }
        }
    }

    fn subscribe(&self, session: &mut Session, chores: &mut Chores, step: Step) {
        match step {
            Step::Make => chores.subscription.make(session, self.ids.next()),
            Step::Over(answer) => {
                chores.subscription.over(&answer);
                // What changed while nobody listened was not heard.
                self.shadow.tools_are_stale();
            }
        }
    }

    fn relist(&self, session: &mut Session, chores: &mut Chores) {
        chores.relisting.start(session, self.asking());
    }
}
