"""An OpenID Connect provider as far as API servers see one: a discovery document, keys, and tokens that the test signs itself."""
import base64
import http.server
import json
import ssl
import subprocess
import threading
import time


def openssl(*args, data=None):
    return subprocess.run(["openssl", *map(str, args)], input=data, capture_output=True, check=True).stdout


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """Serves https://ADDRESS:PORT with a certificate of its own CA, ca.pem in `directory`."""

    def __init__(self, directory, address):
        self.dir, self.ca = directory, directory / "ca.pem"
        for name in ("key", "other"):
            openssl("genrsa", "-out", directory / f"{name}.pem", 2048)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", directory / "ca-key.pem", "-out", self.ca,
                "-subj", "/CN=test provider CA", "-days", 2)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", directory / "tls-key.pem", "-out", directory / "tls.pem",
                "-subj", "/CN=provider", "-addext", f"subjectAltName=IP:{address}", "-addext", "basicConstraints=critical,CA:FALSE",
                "-CA", self.ca, "-CAkey", directory / "ca-key.pem", "-days", 2)
        self.server = http.server.ThreadingHTTPServer(("", 0), self.handler())
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(directory / "tls.pem", directory / "tls-key.pem")
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.issuer = f"https://{address}:{self.server.server_port}"
        self.asked = []  # paths
        self.document = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", "scopes_supported": ["openid", "email", "groups", "offline_access"],
                         "response_types_supported": ["code"], "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def handler(provider):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.asked.append(self.path)
                answers = {"/.well-known/openid-configuration": provider.document, "/keys": {"keys": [provider.public()]}}
                body = json.dumps(answers.get(self.path)).encode()
                self.send_response(200 if self.path in answers else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        return Handler

    def public(self):
        modulus = openssl("rsa", "-in", self.dir / "key.pem", "-noout", "-modulus").decode().strip().removeprefix("Modulus=")
        return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "key", "n": b64(bytes.fromhex(modulus)), "e": b64(b"\x01\x00\x01")}

    def token(self, user, *groups, seconds=600, key="key", **claims):
        now = int(time.time())
        body = {"iss": self.issuer, "aud": "kubernetes", "sub": user, "groups": groups, "iat": now - 5, "exp": now + seconds, **claims}
        text = ".".join(b64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "key"}, body))
        return f"{text}.{b64(openssl('dgst', '-sha256', '-sign', self.dir / f'{key}.pem', data=text.encode()))}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
