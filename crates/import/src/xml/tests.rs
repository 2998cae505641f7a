//! Documents as trees.

use super::*;

fn told(text: &str) -> String {
    parse(text).unwrap_err()
}

#[test]
fn a_document_is_a_tree_with_lines() {
    let text = "<?xml version=\"1.0\"?>\n<!-- <x> -->\n<a one='1' two=\"&lt;&#65;&#x42;&amp;\n2\">t<b/>\n<c\n  d='e'>\n \
                <![CDATA[<&>]]> &gt;</c>u</a>\n<?end?>";
    let root = parse(text).unwrap();
    assert_eq!((root.name.as_str(), root.line, root.text.as_str()), ("a", 3, "t\nu"));
    assert_eq!((root.attribute("one"), root.attribute("two")), (Some("1"), Some("<AB& 2")));
    let lines: Vec<(&str, usize)> = root.children.iter().map(|of| (of.name.as_str(), of.line)).collect();
    assert_eq!(lines, [("b", 4), ("c", 5)]);
    assert_eq!(root.child("c").unwrap().text, "\n <&> >");
    assert_eq!(root.attribute("three"), None);
}

#[test]
fn entities_of_the_document_are_replaced() {
    let text = "<!DOCTYPE a SYSTEM \"a[1].dtd\" [\n <!-- <!ENTITY host 'no'> -->\n <!ENTITY host 'h&#38;lt;'>\n \
                <!ENTITY host 'second'>\n<!ENTITY both \"<b at='&host;'>&host;</b>&more;\">\n<!ENTITY more SYSTEM 'm.xml'>\n\
                <!ELEMENT a (b>')*>\n]>\n<a x='&host;1'>\n&both;\n<c/></a>";
    let text = text.replace(" (b>')*", " ANY");
    let open = |file: &str| {
        assert_eq!(file, "m.xml");
        Ok("<?xml version='1.0'?>\n<m>\n&host;</m>".to_owned())
    };
    let root = parse_with(&text, &open).unwrap();
    assert_eq!(root.attribute("x"), Some("h<1"));
    let names: Vec<(&str, &str, usize)> =
        root.children.iter().map(|of| (of.name.as_str(), of.text.as_str(), of.line)).collect();
    assert_eq!(names, [("b", "h<", 10), ("m", "\nh<", 10), ("c", "", 11)]);
    assert_eq!(root.children[0].attribute("at"), Some("h<"));
    assert!(
        told(&text)
            .contains("line 10: in the entity &both; the entity &more; the file \"m.xml\" is not read")
    );
}

#[test]
fn what_is_not_well_formed_is_told_with_its_line() {
    for (text, says) in [
        ("", "line 1: there is no element"),
        ("<a/>\n<b/>", "line 2: a second root element <b>"),
        ("x<a/>", "line 1: there is text"),
        ("<a>\n<b>\n</a>", "line 3: "),
        ("<a>\n<b>\n", "<a> of line 1 is not closed"),
        ("<a>\n&x;</a>", "line 2: the entity &x; is not declared"),
        ("<a\nb='&x;'/>", "line 1: the entity &x; is not declared"),
        ("<a b='c' b='d'/>", "line 1: "),
        ("<a b='&c'/>", "line 1: an & that is no reference: write &amp;"),
        ("<a>\n&#0;</a>", "line 2: "),
        ("<a>\n<b c=d/></a>", "line 2: "),
        ("<!DOCTYPE a [<!ATTLIST a b CDATA 'c'>]><a/>", "line 1: its DTD declares attributes"),
        ("<!DOCTYPE a [<!ENTITY % x 'y'> %x;]><a/>", "in the DTD: \"%x;]\" is not read"),
        ("<!DOCTYPE a [<!ENTITY b '<c>'>]><a>&b;</a>", "in the entity &b; <c> of line 1 is not closed"),
        ("<!DOCTYPE a [<!ENTITY b '</a><a>'>]><a>&b;</a>", "in the entity &b; "),
    ] {
        let told = told(text);
        assert!(told.contains(says), "{text}: {told}");
    }
}

#[test]
fn everything_has_a_bound() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(parse(&nested(DEPTH_MAX)).is_ok());
    assert!(told(&nested(DEPTH_MAX + 1)).contains("inside each other"));
    assert!(told("<!DOCTYPE a [<!ENTITY x '&x;'>]><a b='&x;'/>").contains("refers to itself"));
    assert!(told("<!DOCTYPE a [<!ENTITY x '&y;'><!ENTITY y '&x;'>]><a>&x;</a>").contains("refers to itself"));
    let mut laughs = String::from("<!DOCTYPE a [<!ENTITY x0 'ha'>");
    let mut nothing = String::from("<!DOCTYPE a [<!ENTITY x0 ''>");
    for number in 1..12 {
        let before = format!("&x{};", number - 1).repeat(10);
        laughs += &format!("<!ENTITY x{number} '{before}'>");
        nothing += &format!("<!ENTITY x{number} '{before}'>");
    }
    for of in [&laughs, &nothing] {
        for root in ["<a b='&x11;'/>", "<a>&x11;</a>"] {
            let told = told(&format!("{of}]>{root}"));
            assert!(told.contains("entities become more than 1048576 bytes"), "{told}");
        }
    }
    let empty = "<!DOCTYPE a [<!ENTITY x ''>]><a>".to_owned() + &"&x;".repeat(REFERENCES_MAX + 1) + "</a>";
    assert!(told(&empty).contains("references to entities"));
    let many = "<a>".to_owned() + &"<b/>".repeat(ELEMENTS_MAX) + "</a>";
    assert!(told(&many).contains("more than 1000000 elements"));
}

proptest::proptest! {
    #[test]
    fn nothing_panics(text in "[<>/!&;'\"= \\[\\]%#\\-?a-cA-Z\n]{0,200}") {
        let _ = parse(&text);
        let _ = parse(&format!("<!DOCTYPE a [<!ENTITY a {text}>]><a>&a;</a>"));
    }
}

#[test]
fn many_entities_and_attributes_take_no_time() {
    let entities: String = (0..9_999).map(|n| format!("<!ENTITY e{n} \"\">")).collect();
    let references = "&e9998;".repeat(200_000);
    let root = parse(&format!("<!DOCTYPE a [{entities}]><a>{references}</a>")).unwrap();
    assert_eq!(root.text, "");
    let attributes: String = (0..200_000).map(|n| format!(" a{n}='1'")).collect();
    assert!(told(&format!("<a{attributes}/>")).contains("more than 1000 attributes"));
}
