//! WebSockets of programs: each is held by a branch, which is over when it is.

use crate::engine::thread::Thread;
use crate::engine::timers::Alarm;
use crate::protocols::transport::Spoken;
use crate::session::SessionState;
use crate::session::failure::Failure;
use crate::session::sockets::{Heard, Said};
use tidemark_record::{Counter, Outcome};

impl Thread<'_> {
    /// The connection of the WebSocket that a session holds, if it does.
    pub fn held_websocket(&self, s: usize) -> Option<usize> {
        let c = self.flow.sessions[s].connection? as usize;
        (self.opens_websockets && self.is_bound(c)).then_some(c)
    }

    /// Something came over a program's WebSocket: the program hears it, and who waits for that goes on.
    pub fn hear(&mut self, b: usize, c: usize, now_ns: u64) {
        let (Some(news), Some(program)) = (self.transport.news(c), &mut self.program) else {
            return self.close(c);
        };
        let broke = self.transport.breaks(c);
        let is_last = news.is_last();
        if let Heard::Text(_) | Heard::Binary(_) = news {
            self.recorder.count(Counter::MessagesHeard, 1);
        }
        let is_taken = program.heard(b as u32, news);
        if let Some(failure) = broke {
            self.break_off(b, failure, now_ns);
        } else if !is_taken && !is_last {
            let words = "the program took no more of what came over its WebSocket";
            self.break_off(b, Failure::Other(Outcome::Protocol, words.into()), now_ns);
        }
        self.flow.sessions[b].due_ns = now_ns;
        if !is_taken && !is_last {
            self.transport.leave(c);
        }
        if is_last || !is_taken {
            self.end_websocket(b, c, now_ns);
        }
        let parent = self.flow.owner(b);
        self.tell_parent(b);
        if parent != b && self.flow.sessions[parent].state == SessionState::Awaiting {
            self.timers.clear(parent, Alarm::Wake);
            self.awaited(parent, now_ns);
        }
    }

    /// What a program left is sent whole.
    pub fn has_left(&mut self, b: usize, c: usize, now_ns: u64) {
        self.flow.sessions[b].due_ns = now_ns;
        self.end_websocket(b, c, now_ns);
    }

    /// A session has a branch of its own say something over the WebSocket that it holds.
    pub fn say(&mut self, s: usize, branch: u32, said: &Said) {
        let b = branch as usize;
        let is_own = b < self.flow.sessions.len() && self.flow.owner(b) == self.flow.owner(s);
        let Some(c) = (if is_own { self.held_websocket(b) } else { None }) else { return };
        let is_over = match self.transport.say(c, said) {
            Ok(spoken) => {
                if spoken == Spoken::Said && matches!(said, Said::Text(_) | Said::Binary(_)) {
                    self.recorder.count(Counter::MessagesSaid, 1);
                }
                spoken == Spoken::Left
            }
            Err(error) => {
                let now_ns = self.clock.now_ns();
                let words = error.to_string();
                if let Some(program) = &mut self.program {
                    program.heard(branch, Heard::Broken(&words));
                }
                self.break_off(b, Failure::Other(Outcome::Reset, words.into()), now_ns);
                true
            }
        };
        if is_over {
            self.end_websocket(b, c, self.clock.now_ns());
        }
    }

    /// The WebSocket that a branch holds is over: the branch is asked what comes next.
    fn end_websocket(&mut self, b: usize, c: usize, now_ns: u64) {
        self.close(c);
        self.timers.set(b, Alarm::Wake, now_ns);
    }

    /// A WebSocket broke: a failure of what began it, at this time, as a request by itself.
    fn break_off(&mut self, b: usize, failure: Failure, now_ns: u64) {
        let request = usize::from(self.flow.sessions[b].request);
        self.count_loss(b, request, &failure, now_ns);
    }

    /// The run is over: whoever is still connected is told.
    pub fn part_from_all(&mut self) {
        if !self.opens_websockets {
            return;
        }
        for s in 0..self.flow.sessions.len() {
            let Some(c) = self.held_websocket(s) else { continue };
            self.transport.leave(c);
            self.close(c);
        }
        // what cannot be sent any more is not waited for
        let _ = self.transport.hand_over();
    }
}
