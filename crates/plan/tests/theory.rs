//! Closed forms: what queues do that are simple enough. Each is written from the textbook, and shares nothing with the
//! simulation.

/// The time that a share of all is below, by halving: `above` says which share is above a time.
pub fn quantile(share: f64, above: impl Fn(f64) -> f64) -> f64 {
    let mut high = 1e-6;
    while above(high) > 1.0 - share {
        high *= 2.0;
    }
    let (mut low, mut high) = (0.0, high);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if above(middle) > 1.0 - share { low = middle } else { high = middle }
    }
    high
}

/// Erlang's C: the chance to wait with `c` servers and `a` = λ/μ of them busy.
pub fn erlang_c(c: usize, a: f64) -> f64 {
    let blocked = (1..=c).fold(1.0, |b, n| a * b / (n as f64 + a * b));
    let c = c as f64;
    c * blocked / (c - a * (1.0 - blocked))
}

/// M/M/c: the share of response times above `t`.
pub fn mmc_above(c: usize, arrival: f64, service: f64, t: f64) -> f64 {
    let waits = erlang_c(c, arrival / service);
    let drain = c as f64 * service - arrival;
    let both = (drain * (-service * t).exp() - service * (-drain * t).exp()) / (drain - service);
    (1.0 - waits) * (-service * t).exp() + waits * both
}

/// M/D/1: the share of response times above `t` (Erlang, 1909).
pub fn md1_above(arrival: f64, service_s: f64, t: f64) -> f64 {
    let wait = t - service_s;
    if wait < 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 0..=(wait / service_s) as i32 {
        let x = arrival * (f64::from(k) * service_s - wait);
        let factorial: f64 = (1..=k).map(f64::from).product();
        sum += x.powi(k) / factorial * (-x).exp();
    }
    1.0 - (1.0 - arrival * service_s) * sum
}

/// M/G/1: the mean response time (Pollaczek and Khinchine).
pub fn mg1_mean(arrival: f64, mean: f64, second_moment: f64) -> f64 {
    mean + arrival * second_moment / (2.0 * (1.0 - arrival * mean))
}

/// M/H2/1 with the rate `a` for the share `p` and `b` for the others: the share of response times above `t`, out of the
/// Pollaczek-Khinchine transform by partial fractions.
pub fn mh1_above(arrival: f64, p: f64, a: f64, b: f64, t: f64) -> f64 {
    let q = 1.0 - p;
    let busy = arrival * (p / a + q / b);
    let half = (a + b - arrival) / 2.0;
    let product = a * b - arrival * (a + b) + arrival * (p * a + q * b);
    let root = (half * half - product).sqrt();
    let (one, two) = (half - root, half + root);
    let part = |r: f64, other: f64| {
        (1.0 - busy) * (p * a * (b - r) + q * b * (a - r)) / ((other - r) * r) * (-r * t).exp()
    };
    part(one, two) + part(two, one)
}

/// M/M/c/K: the chances of 0 to K requests.
pub fn mmck(c: usize, k: usize, a: f64) -> Vec<f64> {
    let mut chances = vec![1.0];
    for n in 1..=k {
        chances.push(chances[n - 1] * a / n.min(c) as f64);
    }
    let sum: f64 = chances.iter().sum();
    chances.into_iter().map(|of| of / sum).collect()
}

/// M/M/1/K: the share of response times above `t` among those that are let in.
pub fn mm1k_above(k: usize, arrival: f64, service: f64, t: f64) -> f64 {
    let chances = mmck(1, k, arrival / service);
    let let_in: f64 = chances[..k].iter().sum();
    // who finds n there is done after n + 1 exponential times: fewer than that many by t
    let mut poisson = (-service * t).exp();
    let mut fewer = poisson;
    let mut above = 0.0;
    for (n, chance) in chances[..k].iter().enumerate() {
        above += chance / let_in * fewer;
        poisson *= service * t / (n + 1) as f64;
        fewer += poisson;
    }
    above
}

/// A closed network by exact mean value analysis (Reiser and Lavenberg): throughput and response time. Each station has one
/// server, and a demand for each request.
pub fn mva(users: usize, think_s: f64, demands_s: &[f64]) -> (f64, f64) {
    let mut queues = vec![0.0; demands_s.len()];
    let mut found = (0.0, 0.0);
    for n in 1..=users {
        let times: Vec<f64> =
            demands_s.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
        let response: f64 = times.iter().sum();
        let throughput = n as f64 / (think_s + response);
        queues = times.iter().map(|time| throughput * time).collect();
        found = (throughput, response);
    }
    found
}

/// M/M/c in a closed network with think time (machine repair): throughput and response time out of the chances of each state.
pub fn repair(users: usize, think_s: f64, c: usize, service_s: f64) -> (f64, f64) {
    let mut chances = vec![1.0f64];
    for n in 1..=users {
        let come = (users - n + 1) as f64 / think_s;
        chances.push(chances[n - 1] * come * service_s / n.min(c) as f64);
    }
    let sum: f64 = chances.iter().sum();
    let busy: f64 = chances.iter().enumerate().map(|(n, chance)| n.min(c) as f64 * chance / sum).sum();
    let there: f64 = chances.iter().enumerate().map(|(n, chance)| n as f64 * chance / sum).sum();
    let throughput = busy / service_s;
    (throughput, there / throughput)
}

#[test]
fn the_forms_agree_where_one_is_a_case_of_another() {
    let at = |share: f64| quantile(share, |t| mmc_above(1, 0.7, 1.0, t));
    for share in [0.5, 0.99, 0.999] {
        // M/M/1 is exponential
        assert!((at(share) / (-(1.0 - share).ln() / 0.3) - 1.0).abs() < 1e-6);
        assert!((at(share) / quantile(share, |t| mh1_above(0.7, 0.5, 1.0, 1.000_001, t)) - 1.0).abs() < 1e-4);
        assert!((at(share) / quantile(share, |t| mm1k_above(400, 0.7, 1.0, t)) - 1.0).abs() < 1e-6);
    }
    assert!((mg1_mean(0.7, 1.0, 2.0) - 1.0 / 0.3).abs() < 1e-9);
    // the mean of M/D/1 out of its distribution
    let mean: f64 = (0..20_000).map(|at| md1_above(0.6, 1.0, f64::from(at) * 0.001) * 0.001).sum();
    assert!((mean / mg1_mean(0.6, 1.0, 1.0) - 1.0).abs() < 1e-3, "{mean}");
    let (one, other) = (mva(30, 10.0, &[1.0]), repair(30, 10.0, 1, 1.0));
    assert!((one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9);
}
