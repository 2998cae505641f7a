//! What targets share.

use tidemark_wire::http1::Decoded;

/// How many bytes a decoder takes that gets them in such pieces, and whether that was all that it waited for.
pub fn in_pieces<E>(
    bytes: &[u8],
    piece_bytes: usize,
    mut decode: impl FnMut(&[u8]) -> Result<Decoded, E>,
) -> Result<(usize, bool), E> {
    let (mut taken, mut complete) = (0, false);
    for piece in bytes.chunks(piece_bytes) {
        let decoded = decode(piece)?;
        assert!(decoded.consumed <= piece.len());
        assert!(decoded.complete || decoded.consumed == piece.len());
        taken += decoded.consumed;
        complete = decoded.complete;
        if complete {
            break;
        }
    }
    Ok((taken, complete))
}
