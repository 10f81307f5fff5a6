"""The operator's side of the agent's protocol (src/deliver/wire.h), small and slow, to test the agent with."""
import hashlib
import json
import os
import select
import struct
import subprocess
import time

HELLO, NEED, READY, EVENT, DONE, OUT, EXIT, ERROR = range(1, 9)
SPEC, ENTRY, SPEC_END, BLOB, DATA, APPLY, RUN = range(32, 39)
TAGS = ("version facts digest drift offset index state detail count id stream bytes status text hint size mode arg input "
        "kind class flags path name target artifact_version owner file_mode content units node").split()
TAG = {name: i + 1 for i, name in enumerate(TAGS)}
KINDS = "dir file link unit artifact image sysctl module mount package user block command".split()
STATES = "same created changed restarted started removed failed".split()
ONCE, ENABLE, START, DISABLE, RELOAD, SET = 1, 2, 4, 8, 16, 32
CHUNK = 256 << 10


def field(tag, value):
    if isinstance(value, int):
        value = struct.pack("<Q", value)
    elif isinstance(value, str):
        value = value.encode()
    return struct.pack("<BI", TAG[tag], len(value)) + value


def frame(type_, **fields):
    payload = b"".join(field(k.rstrip("_"), x) for k, v in fields.items() if v is not None for x in (v if isinstance(v, list) else [v]))
    return struct.pack("<IB", len(payload), type_) + payload


class Frame:
    """Fields by name; a tag that came several times is in all()."""
    NUMBERS = {"version", "offset", "index", "state", "count", "id", "stream", "status", "size", "mode", "kind"}

    def __init__(self, type_, payload):
        self.type, self.fields, at = type_, [], 0
        while at < len(payload):
            tag, n = struct.unpack_from("<BI", payload, at)
            self.fields.append((TAGS[tag - 1], payload[at + 5:at + 5 + n]))
            at += 5 + n

    def all(self, name):
        return [struct.unpack("<Q", v)[0] if name in self.NUMBERS else v if name == "bytes" else v.decode() for k, v in self.fields if k == name]

    def __getattr__(self, name):
        values = self.all(name)
        return values[0] if values else None


def sha(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def entry(kind, key, **fields):
    """One ENTRY as a dict. `blob=BYTES` sends the content as a blob."""
    e = dict(kind=KINDS.index(kind), **({"path": key} if kind in ("dir", "file", "link", "artifact", "mount", "block") else {"name": key}))
    e["class_"] = fields.pop("class_", 1)
    blob = fields.pop("blob", None)
    if blob is not None:
        e["digest"] = sha(blob)
        e["_blob"] = blob
    return {**e, **fields}


def spec_digest(entries):
    return sha(json.dumps([{k: v for k, v in e.items() if k != "_blob"} for e in entries], sort_keys=True, default=repr))


class Cut(Exception):
    pass


class Stopped(Exception):
    """The agent said ERROR."""


class Operator:
    def __init__(self, argv, limit=None, timeout=120):
        """`limit`: the connection is cut after that many bytes were written to the agent."""
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.buffer, self.sent, self.limit, self.timeout = b"", 0, limit, timeout
        self.blob_bytes = 0
        self.needs, self.events, self.done = [], [], None

    def write(self, data):
        if self.limit is not None and self.sent + len(data) > self.limit:
            data = data[:self.limit - self.sent]
            try:
                self.proc.stdin.write(data)
                self.proc.stdin.close()
            except BrokenPipeError:
                pass
            raise Cut
        self.sent += len(data)
        try:
            self.proc.stdin.write(data)
            self.proc.stdin.flush()
        except BrokenPipeError:
            pass  # it stopped: its ERROR is still to be read

    def read(self):
        """The next frame, or None at the end."""
        end = time.monotonic() + self.timeout
        while True:
            if len(self.buffer) >= 5:
                n, type_ = struct.unpack_from("<IB", self.buffer)
                if len(self.buffer) >= 5 + n:
                    payload, self.buffer = self.buffer[5:5 + n], self.buffer[5 + n:]
                    return Frame(type_, payload)
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.proc.stdout], [], [], left)[0]:
                raise TimeoutError
            data = os.read(self.proc.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.buffer += data

    def expect(self, *types):
        f = self.read()
        if f is None:
            raise Cut
        if f.type == ERROR and ERROR not in types:
            raise Stopped(f.text + (f"; {f.hint}" if f.hint else ""))
        assert f.type in types, f"frame {f.type}"
        return f

    def hello(self):
        f = self.expect(HELLO)
        assert f.version == 1
        self.facts, self.digest, self.drift = json.loads(f.facts), f.digest, f.all("drift")
        return self

    def spec(self, entries, digest=None, cluster="test", node=None):
        self.entries = entries
        data = frame(SPEC, digest=digest or spec_digest(entries), count=len(entries), name=cluster, node=node)
        for e in entries:
            data += frame(ENTRY, **{k: v for k, v in e.items() if k != "_blob"})
        self.write(data + frame(SPEC_END))
        self.needs = []
        while (f := self.expect(NEED, READY)).type == NEED:
            self.needs.append((f.digest, f.offset))
        return self

    def blobs(self):
        content = {sha(e["_blob"]): e["_blob"] for e in self.entries if "_blob" in e}
        for digest, offset in self.needs:
            data = content[digest]
            self.write(frame(BLOB, digest=digest, size=len(data), offset=offset))
            for at in range(offset, len(data), CHUNK):
                self.write(frame(DATA, bytes=data[at:at + CHUNK]))
                self.blob_bytes += len(data[at:at + CHUNK])
        return self

    def apply(self, mode=0):
        self.write(frame(APPLY, mode=mode))
        self.events = []
        while (f := self.expect(EVENT, DONE)).type == EVENT:
            self.events.append(f)
        self.done = f
        return self

    def states(self):
        """{key: state}, in which what was removed stands under its own key; the last word on an entry counts."""
        out = {}
        for f in self.events:
            e = self.entries[f.index] if f.index is not None else None
            out[(e.get("path") or e.get("name")) if e else f.name] = STATES[f.state]
        return out

    def details(self):
        return {(self.entries[f.index].get("path") or self.entries[f.index].get("name")) if f.index is not None else f.name: f.detail for f in self.events}

    def run(self, *argv, id=1, input=None, node=None):
        self.write(frame(RUN, id=id, node=node, arg=list(argv), input=input))

    def close(self, wait=True):
        try:
            self.proc.stdin.close()
        except BrokenPipeError:
            pass
        while wait and os.read(self.proc.stdout.fileno(), 1 << 16):
            pass
        self.stderr = self.proc.stderr.read().decode()
        self.proc.stdout.close()
        self.proc.stderr.close()
        self.status = self.proc.wait(self.timeout)
        assert "Sanitizer" not in self.stderr and "runtime error" not in self.stderr, self.stderr
        return self


def run(argv, entries, mode=0, **kw):
    """A whole run, as the operator does it."""
    o = Operator(argv).hello().spec(entries, **kw)
    if mode != 2:
        o.blobs()
    return o.apply(mode).close()
