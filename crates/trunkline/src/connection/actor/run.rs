//! A server that runs: what comes from it, what goes to it, and when it is not needed any more.

use std::sync::Arc;

use tokio::time::Instant;

use super::backoff::Attempts;
use super::legacy_subscribe::Errands;
use super::list_refresh::{Asking, Relistings};
use super::listen::{ACKNOWLEDGED, Step, Subscription};
use super::logging::Logging;
use super::{
    After, Command, Down, End, PAUSE_AFTER_FORGOTTEN, Task, begun_anew, refuse, too_many, unread,
};
use crate::connection::cache::Spoken;
use crate::connection::handler::untrusted;
use crate::connection::handshake::Opened;
use crate::connection::pagination::{List, Pages};
use crate::connection::server_notification::ServerNotification;
use crate::connection::session::{Answer, Asked, Event, Session, at};
use crate::item::Kind;
use crate::message::{Notification, Raw};
use crate::protocol::Era;

/// Bytes of something that a server tells everybody. It is kept until the slowest of them has heard it,
/// and is about changes and lines of logs.
const MAX_TOLD_BYTES: usize = 1024 * 1024;

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// What goes on with a server beside the requests of others.
struct Chores {
    relistings: Relistings,
    subscription: Subscription,
    errands: Errands,
    logging: Logging,
    spoken: Spoken,
}

/// Why a server is asked for more of its log.
#[derive(Clone, Copy)]
enum LogReason {
    /// The connection asks for what was wanted before, for nobody in particular.
    Start,
    /// A client wants it now.
    Client,
}

/// Why a list of tools is not written to a file.
const HOLDS_SECRET: &str = "a tool repeats a secret of the configuration";

impl Task {
    /// Serves until the server ends, nobody needs it, or we are told to end.
    pub(super) async fn serve(
        &mut self,
        opened: Opened,
        waiting: Vec<Command>,
        attempts: &mut Attempts,
    ) -> After {
        let since = Instant::now();
        let Opened { mut session, described, spoken, tools } = opened;
        let mut chores = Chores {
            relistings: Relistings::new(),
            subscription: Subscription::wanted_of(&session, &described),
            errands: Errands::of(&described),
            logging: Logging::of(&session, &described),
            spoken,
        };
        // Whoever sees that it is ready sees its tools.
        self.took_list(&mut session, chores.spoken, tools);
        self.shadow.ready(&session, &described);
        self.shadow.noticed(&session);
        self.watched.begin();
        self.see_to_log(&mut session, &mut chores, LogReason::Start);
        for command in waiting {
            self.obey(&mut session, &mut chores, command);
        }
        self.see_to_watched(&mut session, &mut chores);
        let end = self.run_session(&mut session, &mut chores).await;
        self.shadow.noticed(&session);
        attempts.follow(self.behaviour().restart);
        attempts.lived(since.elapsed());
        // Whoever hears that a call came to nothing sees what has become of the server.
        let down = self.down_after(&end, attempts);
        if let End::Server(error) | End::OutOfReach(error) = &end {
            chores.relistings.fail(&error.clone().of(&self.server.name));
        }
        match &end {
            // Whoever comes next begins anew, beside those who still wait here.
            End::Forgotten | End::OutOfReach(_) => {
                self.fading.spawn(session.fade(self.shutdown_patience()));
            }
            _ => {
                let remaining = session.close(self.shutdown_patience()).await;
                self.shadow.left_behind(&self.server.name, remaining, &self.options);
            }
        }
        match end {
            End::Told(close) => After::Close(close),
            _ => After::Down(down),
        }
    }

    /// Says what has become of a server that is served no more, and why it does not run.
    fn down_after(&mut self, end: &End, attempts: &mut Attempts) -> Down {
        if self.may_return() {
            attempts.keep_reaching();
        }
        match end {
            End::Server(error) | End::OutOfReach(error) => {
                self.failed(&error.clone().of(&self.server.name), attempts)
            }
            End::Idle | End::Forgotten => {
                // Calls that come from now on wait for a start.
                self.shadow.idle();
                match end {
                    End::Forgotten if !self.watched.is_empty() => {
                        Down::Until(Instant::now() + PAUSE_AFTER_FORGOTTEN)
                    }
                    _ => Down::Idle,
                }
            }
            End::Told(_) => Down::Idle,
        }
    }

    async fn run_session(&mut self, session: &mut Session, chores: &mut Chores) -> End {
        loop {
            let idle_at = self.idle_at(session, chores);
            let due = chores.relistings.next_due();
            tokio::select! {
                event = session.next() => match event {
                    Event::Ended(error) => return End::Server(error),
                    Event::Forgotten => return End::Forgotten,
                    Event::OutOfReach(error) => return End::OutOfReach(error),
                    Event::Told(notification, client) => {
                        self.told(session, chores, ServerNotification { notification, client });
                    }
                    Event::Noise => self.shadow.noticed(session),
                    Event::Quiet => {}
                },
                (kind, answer) = chores.relistings.answer() => {
                    self.took_page(session, chores, (kind, answer));
                }
                () = at(due.map(|(time, _)| time)) => {
                    due.iter().for_each(|(_, kind)| self.relist(session, chores, *kind));
                }
                step = chores.subscription.next() => self.subscribe(session, chores, step),
                done = chores.errands.next() => {
                    done.settle(&mut self.watched);
                    self.see_to_watched(session, chores);
                }
                Some(hold) = self.holds.recv() => {
                    self.watched.settle(hold);
                    self.see_to_watched(session, chores);
                }
                Ok(()) = self.log_level.changed() => {
                    self.see_to_log(session, chores, LogReason::Client);
                }
                // Another `idleTimeout` counts from when the server was last needed.
                Ok(()) = self.behaviour.changed() => {}
                Some(abandoned) = self.abandoned.recv() => session.abandon(abandoned),
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
        let patience = self.behaviour().idle_timeout.filter(|_| self.watched.is_empty())?;
        let since = session.idle_since().filter(|_| !chores.relistings.is_any_on())?;
        since.checked_add(patience)
    }

    /// What the server says of its own accord.
    fn told(&mut self, session: &mut Session, chores: &mut Chores, said: ServerNotification) {
        let notification = &said.notification;
        if &*notification.method == ACKNOWLEDGED {
            // That is between the server and us.
            return self.acknowledged(session, chores, notification.params.as_ref());
        }
        if chores.subscription.repeats(notification) {
            return;
        }
        if notification.params.as_ref().is_some_and(|it| it.bytes().len() > MAX_TOLD_BYTES) {
            session.noise += 1;
            return self.shadow.noticed(session);
        }
        for kind in Kind::changed_by(&notification.method) {
            self.shadow.is_stale(*kind);
            // What nobody has asked for yet is not asked for now.
            if self.shadow.listed(*kind).is_known {
                chores.relistings.of(*kind).changed();
            }
        }
        let notification = untrusted::heard(self.server.trust, said.notification);
        let said = ServerNotification { notification, ..said };
        if let Some(attendant) = self.options.attendant() {
            attendant.on_notification(&said.notification);
        }
        // There may be no listener.
        let _ = self.told.send(said);
    }

    /// Takes an acknowledgement of `subscriptions/listen`. Lists that changed before it are found by
    /// listing again.
    fn acknowledged(&mut self, session: &mut Session, chores: &mut Chores, params: Option<&Raw>) {
        let is_first = chores.subscription.acknowledged(session, &mut self.watched, params);
        if !is_first {
            return;
        }
        for kind in chores.subscription.announced_kinds() {
            if self.shadow.listed(kind).is_known {
                chores.relistings.of(kind).changed();
            }
        }
    }

    /// Obeys what has been commanded so far, so that what is ready together is written together.
    /// Returns the command to end the server, if that is among it.
    fn obey_all(
        &mut self,
        session: &mut Session,
        chores: &mut Chores,
        first: Command,
    ) -> Option<Command> {
        let mut next = Some(first);
        while let Some(command) = next {
            if command.ends_server() {
                return Some(command);
            }
            self.obey(session, chores, command);
            next = self.commands.try_recv().ok();
        }
        None
    }

    fn obey(&mut self, session: &mut Session, chores: &mut Chores, command: Command) {
        match command {
            Command::Connect(done) => {
                let _ = done.send(Ok(()));
            }
            Command::Ask(ref asked) if !session.admits(asked) => refuse(command, &too_many()),
            Command::Ask(_) if session.is_full() => refuse(command, &unread()),
            // Nobody waits for it any more: it was dropped, or is too late, before it was sent.
            Command::Ask(asked) if asked.reply.is_closed() || asked.deadline <= Instant::now() => {
                drop(asked);
            }
            // What somebody has looked at may be another thing by now.
            Command::Ask(Asked { within: Some(edition), .. })
                if edition != self.shadow.edition() =>
            {
                refuse(command, &begun_anew());
            }
            Command::Ask(asked) => {
                self.shadow.called();
                session.ask(asked);
            }
            Command::Respond { session: number, response } => session.respond(number, response),
            // Nobody waits for it, and too much waits for the server already.
            Command::Tell(_) if session.is_full() => {}
            // That generation asks for roots anew each time it needs them.
            Command::Tell(Notification { method, .. })
                if &*method == ROOTS_CHANGED && session.version.era() == Era::Modern => {}
            Command::Tell(Notification { method, params }) => session.tell(&method, params),
            Command::Refresh(kind, done) if self.shadow.listed(kind).is_fresh() => {
                let _ = done.send(Ok(()));
            }
            Command::Refresh(kind, done) if !self.shadow.offers(kind) => {
                let none = Pages::new(kind, session.mirrors()).finish();
                self.took_list(session, chores.spoken, none);
                let _ = done.send(Ok(()));
            }
            Command::Refresh(kind, done) => {
                chores.relistings.of(kind).wait(done);
                self.relist(session, chores, kind);
            }
            Command::Watch(subject, requester, reply) => {
                self.watched.want(subject, &requester, reply);
                self.see_to_watched(session, chores);
            }
            // Taken by whoever received it.
            Command::Stop(_) | Command::Close(_) => {}
        }
    }

    /// Takes a list that is complete, for everybody and, if it is of tools, for the next time.
    fn took_list(&mut self, session: &mut Session, spoken: Spoken, list: List) {
        let ttl = list.ttl.unwrap_or(self.behaviour().tools_ttl);
        if list.kind != Kind::Tool {
            return self.shadow.took(list, ttl);
        }
        session.set_mirrored(list.mirrored.clone());
        let record = self.options.memory().record(&self.fingerprint, spoken, &list.items);
        self.shadow.took(list, ttl);
        let Some(record) = record else { return };
        if record.holds_secret(&self.shadow.mask()) {
            self.options.memory().forget_file(&self.fingerprint);
            return self.shadow.not_remembered(Some(HOLDS_SECRET.into()));
        }
        let shadow = Arc::clone(&self.shadow);
        while self.writing.try_join_next().is_some() {}
        self.writing.spawn_blocking(move || {
            let failure = record.write().err().map(|error| error.kind().to_string().into());
            shadow.not_remembered(failure);
        });
    }

    /// Takes a page of the list, and perhaps all of it.
    fn took_page(&mut self, session: &mut Session, chores: &mut Chores, page: (Kind, Answer)) {
        let (kind, answer) = page;
        let asking = self.asking();
        let Some(list) = chores.relistings.of(kind).took(session, asking, answer) else { return };
        let result = list.map(|list| self.took_list(session, chores.spoken, list));
        let relisting = chores.relistings.of(kind);
        if relisting.is_due() {
            self.shadow.is_stale(kind);
        }
        relisting.tell(&result);
        // The old list is better than none.
        if let Err(error) = result {
            self.shadow.trouble(error.of(&self.server.name));
        }
    }

    /// Asks the server for what somebody wants to hear of and was not asked for yet.
    fn see_to_watched(&mut self, session: &mut Session, chores: &mut Chores) {
        match session.version.era() {
            Era::Modern => chores.subscription.see_to(&mut self.watched),
            Era::Legacy => {
                let patience = self.behaviour().timeouts.list;
                let asking = Asking::new(&self.ids, patience);
                chores.errands.run(session, &mut self.watched, asking);
            }
        }
    }

    fn see_to_log(&mut self, session: &mut Session, chores: &mut Chores, reason: LogReason) {
        let wanted = self.log_level.borrow_and_update().clone();
        let Some((level, requester)) = wanted else { return };
        let requester = match reason {
            LogReason::Start => None,
            LogReason::Client => requester,
        };
        chores.logging.ask(session, self.asking(), (level, requester));
    }

    fn subscribe(&mut self, session: &mut Session, chores: &mut Chores, step: Step) {
        match step {
            Step::Make => chores.subscription.make(session, &mut self.watched, self.ids.next()),
            Step::Late => chores.subscription.late(session, &mut self.watched),
            Step::Retire => chores.subscription.retire(session),
            Step::Over(which, answer) => {
                chores.subscription.over(which, &answer, &mut self.watched);
                // What changed while nobody listened was not heard.
                Kind::ALL.iter().for_each(|kind| self.shadow.is_stale(*kind));
            }
        }
    }

    fn relist(&self, session: &mut Session, chores: &mut Chores, kind: Kind) {
        chores.relistings.of(kind).start(session, self.asking());
    }
}
