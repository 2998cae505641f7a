//! How a server of PostgreSQL is told who comes. MD5 and SCRAM are tokio-postgres' own.

use std::io::{self, ErrorKind};

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use tidemark_wire::postgres::{Authentication, write};

use super::Postgres;

/// How far it is.
#[derive(Default)]
pub(crate) struct Login {
    scram: Option<ScramSha256>,
}

// without what is secret
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

impl Login {
    /// What the server asks is answered.
    ///
    /// # Errors
    /// It cannot be, or the server is not who it should be.
    pub fn answer(&mut self, asked: Authentication<'_>, who: &Postgres, out: &mut Vec<u8>) -> io::Result<()> {
        if !matches!(asked, Authentication::Ok | Authentication::SaslFinal(_)) && who.password.is_empty() {
            let words = "the server wants a password; put it into the URL: postgres://USER:PASSWORD@HOST/DATABASE, best as \
                         ${env('NAME')}";
            return Err(io::Error::new(ErrorKind::PermissionDenied, words));
        }
        match asked {
            Authentication::Ok => Ok(()),
            Authentication::Cleartext => {
                write::password(who.password.as_bytes(), out);
                Ok(())
            }
            Authentication::Other(kind) => {
                let words = format!(
                    "the server wants authentication of kind {kind}; spoken are a password, MD5 and SCRAM-SHA-256"
                );
                Err(io::Error::new(ErrorKind::Unsupported, words))
            }
            asked => self.hashed(asked, who, out),
        }
    }

    fn hashed(&mut self, asked: Authentication<'_>, who: &Postgres, out: &mut Vec<u8>) -> io::Result<()> {
        let out_of_turn = || io::Error::new(ErrorKind::InvalidData, "the server authenticates out of turn");
        match asked {
            Authentication::Md5(salt) => {
                write::password(md5_hash(who.user.as_bytes(), who.password.as_bytes(), salt).as_bytes(), out);
            }
            Authentication::Sasl(mechanisms) => {
                let mut names = mechanisms.split(|byte| *byte == 0);
                if !names.any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    let words = "the server wants a mechanism of SASL other than SCRAM-SHA-256";
                    return Err(io::Error::new(ErrorKind::Unsupported, words));
                }
                let scram = ScramSha256::new(who.password.as_bytes(), ChannelBinding::unsupported());
                write::sasl_begin(SCRAM_SHA_256, scram.message(), out);
                self.scram = Some(scram);
            }
            Authentication::SaslContinue(data) => {
                let scram = self.scram.as_mut().ok_or_else(out_of_turn)?;
                scram.update(data)?;
                write::sasl_next(scram.message(), out);
            }
            Authentication::SaslFinal(data) => {
                self.scram.as_mut().ok_or_else(out_of_turn)?.finish(data)?;
            }
            Authentication::Ok | Authentication::Cleartext | Authentication::Other(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: Authentication<'_>, password: &str) -> io::Result<Vec<u8>> {
        let who = Postgres { user: "md5_user".into(), password: password.into(), ..Postgres::default() };
        let mut out = Vec::new();
        Login::default().answer(asked, &who, &mut out).map(|()| out)
    }

    #[test]
    fn a_server_gets_the_password_as_it_wants_it_or_a_person_hears_why_not() {
        assert_eq!(told(Authentication::Ok, "").unwrap(), b"");
        assert_eq!(told(Authentication::Cleartext, "password").unwrap(), b"p\0\0\0\x0dpassword\0");
        for (asked, password, words) in [
            (Authentication::Cleartext, "", "put it into the URL"),
            (Authentication::Other(7), "x", "of kind 7"),
        ] {
            let error = told(asked, password).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_hashed_password_is_the_one_that_the_server_knows() {
        let salt = [0x2a, 0x3d, 0x8f, 0xe0];
        let hashed = told(Authentication::Md5(salt), "password").unwrap();
        assert_eq!(&hashed[5..], b"md562af4dd09bbb41884907a838a3233294\0");
        let begun = told(Authentication::Sasl(b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"), "x").unwrap();
        assert!(begun[5..].starts_with(b"SCRAM-SHA-256\0"));
        assert!(told(Authentication::Sasl(b"GSSAPI\0\0"), "x").is_err());
        assert!(told(Authentication::SaslContinue(b"r=1"), "x").is_err());
    }
}
