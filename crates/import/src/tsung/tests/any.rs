//! Steps of any kind.

use proptest::prelude::*;

use super::*;

/// A plan with nearly all there is.
fn rich() -> String {
    let options = "<option name=\"thinktime\" value=\"3\"/><option name=\"user_agent\" type=\"ts_http\"><user_agent probability=\"60\">A</user_agent>\
                   <user_agent probability=\"40\">B</user_agent></option>";
    let session = "<session name=\"s\" probability=\"100\" type=\"ts_http\">\
        <setdynvars sourcetype=\"random_string\" length=\"5\"><var name=\"r\"/></setdynvars>\
        <transaction name=\"t\"><request subst=\"true\"><match>x</match><dyn_variable name=\"d\" jsonpath=\"a\"/><http url=\"/%%_r%%\"><soap action=\"a\"/>\
        <http_header name=\"X\" value=\"y\"/></http></request><thinktime value=\"1\"/></transaction>\
        <for from=\"1\" to=\"2\" var=\"i\"><request><http url=\"/i\"/></request></for>\
        <repeat name=\"p\"><request><http url=\"/p\"/></request><while var=\"d\" eq=\"1\"/></repeat>\
        <if var=\"d\" eq=\"1\"><request><http url=\"/f\"/></request></if><foreach name=\"e\" in=\"d\"><request><http url=\"/e\"/></request></foreach>\
        <request><jabber type=\"chat\" ack=\"no_ack\"/></request></session>";
    let text = plan_with(
        &format!(
            "{PHASE}<arrivalphase phase=\"2\" duration=\"9\" unit=\"second\"><session_setup name=\"s\" probability=\"100\"/><users interarrival=\"1\" unit=\"second\"/></arrivalphase>"
        ),
        options,
        session,
    );
    text.replace(
        "<load>",
        "<monitoring><monitor host=\"db\" type=\"snmp\"><snmp version=\"v2\"/></monitor></monitoring><load>",
    )
}

proptest! {
    /// Wherever something stands that is not known, it is told, and what is made is right all the same.
    #[test]
    fn what_is_not_known_is_told_wherever_it_stands(places in proptest::collection::vec(0usize..200, 1..4), attribute in 0usize..200) {
        let text = rich();
        let body = text.find("<tsung").unwrap();
        let inside: Vec<usize> = text.match_indices('>').map(|(at, _)| at + 1).filter(|at| *at > body && *at < text.len() - 2).collect();
        let mut places: Vec<usize> = places.iter().map(|place| inside[place % inside.len()]).collect();
        places.sort_unstable();
        places.dedup();
        let mut text = text;
        for (number, place) in places.iter().enumerate().rev() {
            text.insert_str(*place, &format!("<odd{number} name=\"n{number}\"/>"));
        }
        let tags: Vec<usize> = text.match_indices("<server host").map(|(at, _)| at + 7)
            .chain(text.match_indices("<http url").map(|(at, _)| at + 5))
            .chain(text.match_indices("<thinktime").map(|(at, _)| at + 10))
            .chain(text.match_indices("<for from").map(|(at, _)| at + 4)).collect();
        text.insert_str(tags[attribute % tags.len()], " strange=\"1\"");
        let root = crate::xml::parse(&text).unwrap();
        let (yaml, told) = made(&text);
        for number in 0..places.len() {
            let name = format!("<odd{number} n{number}>");
            // what stands in a request of another protocol is told with it
            let is_in_jabber = within(&root, "jabber", &format!("odd{number}")) || within(&root, "snmp", &format!("odd{number}"));
            let count = told.iter().filter(|one| one.element == name).count();
            prop_assert!(count == 1 || is_in_jabber && count == 0, "{}: {:?}\n{}", name, told, yaml);
        }
        prop_assert!(told.iter().any(|one| one.would.contains("strange=\"1\"")), "{:?}", told);
    }

    #[test]
    fn steps_within_each_other_are_read(steps in within_each_other()) {
        made(&plan(&format!("{steps}<request><http url=\"/\"/></request>")));
    }

    #[test]
    fn any_steps_are_read_or_refused(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..8)) {
        let text = plan(&format!("{}<request><http url=\"/\"/></request>", parts.concat()));
        if crate::xml::parse(&text).is_ok() {
            made(&text);
        }
    }
}

/// Steps, and steps within them.
fn within_each_other() -> impl Strategy<Value = String> {
    let is_whole = |part: &&str| crate::xml::parse(&format!("<a>{part}</a>")).is_ok();
    let whole: Vec<&str> = PARTS.iter().copied().filter(is_whole).collect();
    let leaf = proptest::sample::select(whole).prop_map(str::to_owned);
    leaf.prop_recursive(16, 80, 3, |inner| {
        let around = proptest::sample::select(AROUND);
        (around, proptest::collection::vec(inner, 0..3))
            .prop_map(|((begin, end), inner)| format!("{begin}{}{end}", inner.concat()))
    })
}

/// What stands around steps.
const AROUND: &[(&str, &str)] = &[
    ("<for from=\"1\" to=\"3\" var=\"i\">", "</for>"),
    ("<for from=\"0\" to=\"%%_v%%\" incr=\"2\" var=\"v\">", "</for>"),
    ("<if var=\"v\" eq=\"1\">", "</if>"),
    ("<if var=\"v\" eq=\"a}b${c'\\\">", "</if>"),
    ("<if var=\"nowhere\" gt=\"1\">", "</if>"),
    ("<foreach name=\"e\" in=\"in\" include=\"^a\">", "</foreach>"),
    ("<foreach name=\"v\" in=\"v\">", "</foreach>"),
    ("<transaction name=\"t\">", "</transaction>"),
    ("<repeat name=\"r\" max_repeat=\"3\">", "<while var=\"v\" neq=\"2\"/></repeat>"),
    ("<repeat name=\"r\">", "<until var=\"i\" gte=\"2\"/></repeat>"),
];

/// Parts of a session, right or not.
const PARTS: &[&str] = &[
    "<request>",
    "</request>",
    "<http url=\"/a?b=%%_v%%&amp;c=${d}\" method=\"POST\" contents=\"a=$%%_v%%&amp;b\"/>",
    "<request subst=\"true\"><http url=\"%%_v%%\" contents=\"x\" method=\"PUT\"/></request>",
    "<request subst=\"true\"><http url=\"http://h/%%_v%%/%%a:b%%\"/></request>",
    "<setdynvars sourcetype=\"value\" value=\"${x} '\\\"><var name=\"v\"/></setdynvars>",
    "<setdynvars sourcetype=\"random_number\" start=\"9\" end=\"1\"><var name=\"w\"/></setdynvars>",
    "<request><dyn_variable name=\"v\" re=\"a(${b\"/><dyn_variable name=\"in\" jsonpath=\"a-b['c\"/><http url=\"/\"/></request>",
    "<for from=\"1\" to=\"%%_v%%\" incr=\"3\" var=\"v\">",
    "</for>",
    "<if var=\"v[2]\" neq=\"it's\">",
    "</if>",
    "<foreach name=\"v\" in=\"v\" exclude=\"a\">",
    "</foreach>",
    "<transaction name=\"t ${u}\">",
    "</transaction>",
    "<repeat name=\"v\" max_repeat=\"2\">",
    "<until var=\"v\" eq=\"$\"/></repeat>",
    "<thinktime value=\"%%_v%%\"/>",
    "<thinktime/>",
    "<request><match do=\"loop\" when=\"nomatch\">a.c</match><match do=\"abort\">${x}</match><http url=\"/m\"/></request>",
    "<request><websocket type=\"connect\" path=\"p%%_v%%\"/></request>",
    "<request subst=\"true\"><websocket type=\"message\">%%_v%%</websocket></request>",
    "<request><dyn_variable name=\"v\" jsonpath=\"a\"/><websocket type=\"message\" ack=\"no_ack\">x</websocket></request>",
    "<request><dyn_variable name=\"in\" jsonpath=\"a[*]\"/><match>x</match><websocket type=\"message\" frame=\"text\">%%_v%%</websocket></request>",
    "<request><websocket type=\"close\"/></request>",
    "<request tag=\"a\"><http url=\"/tag\"/></request><request tag=\"b ${c}\"><http url=\"/tag\"/></request><request><http url=\"/tag\"/></request>",
    "<request><http url=\"/é ü?é=%zz#f\" method=\"PROPFIND\" contents=\"é\" content_type=\"text/plain; charset=${x}\"/></request>",
    "<request><http url=\"/h\"><http_header name=\"Host\" value=\"other\"/><http_header name=\"Content-Length\" value=\"5\"/></http></request>",
    "<request><http url=\"/h\"><http_header name=\"Connection\" value=\"close\"/><http_header name=\"Transfer-Encoding\" value=\"chunked\"/></http></request>",
    "<request><http url=\"/h\"><http_header name=\"bad name:\" value=\"é\"/><http_header name=\"Cookie\" value=\"a=b\"/><add_cookie key=\"k\" value=\"v\"/></http></request>",
    "<request><http url=\"/h\" method=\"GET \"/></request><request><http url=\"//\" method=\"get\"/></request><request><http url=\"http://[::1]:x/\"/></request>",
    "<request><http url=\"/a\" method=\"POST\" content_type=\"application/json\" contents=\"[1.50, 1e400, {&quot;a&quot;:1,&quot;a&quot;:2}]\"/></request>",
    "<request><http url=\"/a\" method=\"POST\" content_type=\"application/json\" contents=\"{&quot;${a&quot;: &quot;$&quot;, &quot;b&quot;: [null, true, -0.0]}\"/></request>",
    "<abort/>",
    "<change_type new_type=\"ts_http\" host=\"x\" port=\"1\" server_type=\"tcp\"/>",
];

fn within(element: &Element, outer: &str, name: &str) -> bool {
    fn has(element: &Element, name: &str) -> bool {
        element.children.iter().any(|child| child.name == name || has(child, name))
    }
    element.name == outer && has(element, name)
        || element.children.iter().any(|child| within(child, outer, name))
}
