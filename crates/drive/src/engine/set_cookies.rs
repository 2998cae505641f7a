//! What answers set: cookies are kept for whoever is to be sent them.

use tidemark_wire::http1::cookie;

use crate::engine::thread::Thread;
use crate::session::cookies::take;

impl Thread<'_> {
    /// Keeps the cookies that a session's answer sets.
    #[inline]
    pub fn keep_cookies(&mut self, s: usize, c: usize, now_ns: u64) {
        if self.prepared[usize::from(self.flow.sessions[s].sends)].sets_cookies {
            self.take_cookies(s, c, now_ns);
        }
    }

    fn take_cookies(&mut self, s: usize, c: usize, now_ns: u64) {
        let answer = self.transport.answer(c);
        let session = &self.flow.sessions[s];
        let (from, prepared) = (session.target(), &self.prepared[usize::from(session.sends)]);
        let owner = self.flow.owner(s);
        let session = &mut self.flow.sessions[owner];
        let (sites, clock) = (&self.sites[..], &self.clock);
        let (counts, witness) = (&mut self.flow.cookies, &mut self.witness);
        answer.each_set_cookie(&mut |value| {
            // what names no cookie is left alone, as browsers do
            let Some(set) = cookie::parse(value) else { return };
            let path =
                prepared.cookie_path.as_deref().unwrap_or_else(|| cookie::default_path(answer.asked()));
            let now_s = clock.wall_ms(now_ns) / 1_000;
            if let Err(why) = take(&mut session.cold_or_new().jars, (sites, from), &set, path, now_s) {
                why.count(counts);
                if let Some(witness) = witness.as_deref_mut() {
                    witness.cookie_not_kept(s, set.name, why.words());
                }
            }
        });
    }
}
