//! What tests of several codecs share.

use crate::http1::Decoded;

/// Gives a decoder these bytes piece by piece until something is complete: how many it took, and whether it is.
pub(crate) fn in_pieces<E>(
    bytes: &[u8],
    piece_bytes: usize,
    mut decode: impl FnMut(&[u8]) -> Result<Decoded, E>,
) -> Result<(usize, bool), E> {
    let mut taken = 0;
    for piece in bytes.chunks(piece_bytes.max(1)) {
        let decoded = decode(piece)?;
        taken += decoded.consumed;
        if decoded.complete {
            return Ok((taken, true));
        }
        assert_eq!(decoded.consumed, piece.len());
    }
    Ok((taken, false))
}
