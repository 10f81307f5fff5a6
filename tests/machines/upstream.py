"""What the program's catalogue says: the versions that tests are written for, and where the cache has upstream's programs
(`slipway programs`, which builds them too). The only place of the tests that knows either."""
import json
import os
import subprocess
from pathlib import Path

SLIPWAY = Path(os.environ.get("SLIPWAY") or Path(__file__).resolve().parents[2] / "build" / "slipway").resolve()
CATALOGUE = json.loads(subprocess.run([SLIPWAY, "programs"], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout)
NEWEST, PREVIOUS = CATALOGUE["kubernetes"]["newest"], CATALOGUE["kubernetes"]["previous"]
IMAGES = CATALOGUE["images"]  # "pause": "registry.k8s.io/pause:…"


def version(name):
    return next(p["version"] for p in CATALOGUE["programs"] if p["name"] == name)


def programs(name, of=None):
    """The directory with the programs of "kubernetes", "etcd", …; of: another version than the newest."""
    return Path(next(p["dir"] for p in CATALOGUE["programs"] if p["name"] == name and of in (None, p["version"])))


def upstream(name):
    """One program, whichever directory of the newest versions it is in."""
    found = [p for row in CATALOGUE["programs"] if row["set"] != "previous" and (p := Path(row["dir"]) / name).is_file()]
    assert found, f"{name} is not in the cache: build/slipway programs common"
    return found[0]
