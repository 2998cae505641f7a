//! Redirects that are followed: the requests that hops are made with.

use super::Session;
use super::requests::Requests;
use super::targets::speaks_http;
use crate::expr::Expr;
use crate::plan::{
    Follow, Hops, HttpRequest, RequestKind, RequestPlan, System, Target, TargetForm, UploadPiece,
};
use crate::reader::Reader;
use crate::secrets::is_secret_name;
use crate::steps::Step;
use crate::template::{Encoding, Template};
use crate::yaml::Node;

/// Headers that speak of a body.
const OF_BODY: &str = "content-";

impl Session<'_, '_> {
    /// How a step's redirects are followed; what would vary from hop to hop is made once.
    pub(crate) fn follow(&mut self, step: &Step<'_>, ask: &mut RequestKind) -> Option<Follow> {
        let default = self.requests.default_follow.clone();
        let node = step.get("follow").or(default.as_ref())?;
        let most = self.reader.whole(node, 0)?;
        if most > Follow::MOST {
            let message = format!("{most} is too large; at most {}", Follow::MOST);
            self.reader.sink.error(node, message);
        }
        let RequestKind::Http(request) = ask else { return None };
        if most == 0 {
            return None;
        }
        let location = match self.location {
            Some(slot) => slot,
            None => *self.location.insert(self.scope.hidden("location")),
        };
        let mut fixed = Vec::new();
        let of_upload = request.upload.iter_mut().filter_map(|piece| match piece {
            UploadPiece::Text(text) => Some(text),
            UploadPiece::File(_) => None,
        });
        let headers = request.headers.iter_mut().map(|(_, value)| value);
        for part in headers.chain(&mut request.body).chain(of_upload) {
            if part.varies() {
                let slot = self.scope.hidden("as it was sent");
                let mut sent = Template::default();
                sent.push_hole(Expr::variable(slot), Encoding::Raw);
                fixed.push((slot, std::mem::replace(part, sent)));
            }
        }
        let is_post = request.method == "POST";
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Some(Follow { most, location, fixed, is_post, hops: Vec::new() })
    }
}

/// Adds the requests of hops, once it is known where each request goes.
pub(super) fn add_hops(
    root: &Node,
    system: &System,
    targets: &[Target],
    requests: &mut Requests,
    reader: &Reader<'_>,
) {
    let all = std::iter::once(system).chain(targets.iter().map(|target| &target.at));
    let takes_calls = |target: usize| {
        requests.plans.iter().any(|plan| usize::from(plan.target) == target && plan.is_call())
    };
    let http = all.enumerate().filter(|(_, at)| speaks_http(root, at)).map(|(target, _)| target);
    let http: Vec<u16> =
        http.filter(|target| !takes_calls(*target)).filter_map(|target| u16::try_from(target).ok()).collect();
    for index in 0..requests.plans.len() {
        let plan = &requests.plans[index];
        let (Some(follow), Some(request)) = (&plan.follow, plan.http()) else { continue };
        let others = http.iter().filter(|target| **target != plan.target);
        let mut hops = Vec::new();
        let mut added: Vec<RequestPlan> = Vec::new();
        let first = requests.plans.len();
        for target in std::iter::once(&plan.target).chain(others) {
            let is_other = *target != plan.target;
            let mut add = |request: HttpRequest| {
                let mut hop = RequestPlan { ask: RequestKind::Http(request), follow: None, ..plan.clone() };
                (hop.target, hop.ledger, hop.key) = (*target, None, None);
                added.push(hop);
                u16::try_from(first + added.len() - 1).ok()
            };
            let same = add(hop_of(request, follow, is_other, false));
            let is_get = matches!(request.method.as_str(), "GET" | "HEAD");
            let get = if is_get { same } else { add(hop_of(request, follow, is_other, true)) };
            let (Some(same), Some(get)) = (same, get) else {
                let message = "this scenario has too many requests, with those that follow redirects";
                return reader.sink.error_at(requests.places[index], message.to_owned());
            };
            hops.push(Hops { target: *target, same, get });
        }
        if let Some(follow) = &mut requests.plans[index].follow {
            follow.hops = hops;
        }
        requests.plans.extend(added);
    }
}

/// The request of a hop. Nothing that is secret is sent to another server than the one that it was meant for.
fn hop_of(request: &HttpRequest, follow: &Follow, is_other: bool, as_get: bool) -> HttpRequest {
    let goes = |(name, _): &&(String, Template)| {
        let is_of_body = name.get(..OF_BODY.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(OF_BODY));
        !(as_get && is_of_body || is_other && is_secret_name(name))
    };
    let mut target = Template::default();
    target.push_hole(Expr::variable(follow.location), Encoding::Raw);
    HttpRequest {
        method: if as_get { "GET".to_owned() } else { request.method.clone() },
        target,
        form: TargetForm::Whole,
        headers: request.headers.iter().filter(goes).cloned().collect(),
        without_cookies: request.without_cookies,
        body: request.body.clone().filter(|_| !as_get),
        upload: if as_get { Vec::new() } else { request.upload.clone() },
    }
}
