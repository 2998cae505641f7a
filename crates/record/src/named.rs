//! Enumerations whose variants have names.

/// Declares an enumeration, and the name of each of its variants in files and on the command line.
///
/// ```
/// tidemark_record::named! {
///     /// Where it goes.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Way {
///         /// There.
///         Out = "out",
///         /// And back.
///         Home = "home-again",
///     }
/// }
/// assert_eq!((Way::ALL, Way::NAMES), ([Way::Out, Way::Home], ["out", "home-again"]));
/// assert_eq!((Way::Home.name(), Way::from_name("out")), ("home-again", Some(Way::Out)));
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$about:meta])*
        $vis:vis enum $kind:ident {
            $( $(#[$of_variant:meta])* $variant:ident = $name:literal, )+
        }
    ) => {
        $(#[$about])*
        $vis enum $kind {
            $( $(#[$of_variant])* $variant, )+
        }

        #[allow(dead_code, reason = "not every enumeration is asked for all of it")]
        impl $kind {
            /// All of them, in order.
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$variant),+];
            /// Their names, in the same order.
            pub const NAMES: [&'static str; $kind::ALL.len()] = [$($name),+];

            /// Its name, in files and on the command line.
            pub const fn name(self) -> &'static str {
                $kind::NAMES[self as usize]
            }

            /// By its name.
            pub fn from_name(name: &str) -> Option<$kind> {
                $kind::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
