//! OpenMetrics text in Prometheus' own text format, 0.0.4, for whoever does not ask for the newer one.

/// The same page in the older format: there a counter's family has the name of its samples, and an info is a gauge.
pub fn of(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    // HELP comes before TYPE, which says how both are to be written
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = said.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|said| said.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take() {
                text.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn families_are_called_as_their_samples() {
        let page = "# HELP a_b Help of it.\n# TYPE a_b counter\na_b_total{x=\"# TYPE\"} 3\n# HELP r R.\n# TYPE r info\nr_info{v=\"1\"} 1\n# EOF\n";
        let classic = "# HELP a_b_total Help of it.\n# TYPE a_b_total counter\na_b_total{x=\"# TYPE\"} 3\n# HELP r_info R.\n# TYPE r_info gauge\nr_info{v=\"1\"} 1\n";
        assert_eq!(super::of(page), classic);
    }
}
