import http from 'k6/http';
import crypto, { hmac, sha256 } from 'k6/crypto';
import encoding, { b64encode } from 'k6/encoding';

export default function () {
  const signed = [
    crypto.md5('a', 'hex'),
    crypto.sha1('a', 'base64'),
    sha256('a', 'hex'),
    crypto.sha512_256('a', 'hex'),
    crypto.ripemd160('a', 'hex'),
    hmac('sha256', 'key', 'text', 'hex'),
    hmac('sha384', 'key', 'text', 'base64url'),
    b64encode('hello wörld?>'),
    b64encode('hello?>', 'rawurl'),
    encoding.b64decode('aGVsbG8=', 'std', 's'),
    encoding.b64decode('aGVsbG8', 'rawstd', 's'),
    crypto.hexEncode('az'),
    crypto.randomBytes(5).byteLength,
  ];
  const hash = crypto.createHash('sha256');
  hash.update('a');
  hash.update('b');
  signed.push(hash.digest('hex'));
  const mac = crypto.createHMAC('sha1', 'key');
  mac.update('text');
  signed.push(mac.digest('hex'));
  for (const sign of signed) http.get(`${__ENV.BASE}/sign`, { headers: { 'X-Sign': String(sign) } });
}
