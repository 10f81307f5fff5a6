"""OpenTofu in a directory that `slipway export terraform` wrote, with its provider for OpenStack: both from the cache, nothing from the network."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "machines"))
from upstream import programs, version  # noqa: E402

PROGRAM = programs("opentofu") / "tofu"
PROVIDER = "terraform-provider-openstack"
NOWHERE = "http://127.0.0.1:1"  # a proxy: whoever asks a registry fails at once


class Tofu:
    def __init__(self, infra, home, env):
        """infra: the directory, which may not be there yet; home: where the mirror of providers is made."""
        self.infra, self.mirror, config = infra, home / "providers", home / "tofu.rc"
        self.mirror.mkdir(parents=True, exist_ok=True)
        config.write_text(f"provider_installation {{\n  filesystem_mirror {{\n    path = {json.dumps(str(self.mirror))}\n  }}\n}}\n")
        self.env = {**env, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "TF_CLI_CONFIG_FILE": str(config), "TF_IN_AUTOMATION": "1", "TF_INPUT": "0"}

    def __call__(self, verb, *args, ok=0):
        r = subprocess.run([PROGRAM, f"-chdir={self.infra}", verb, "-no-color", *args], env={**self.env, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1"}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert r.returncode == ok, f"tofu {verb}: status {r.returncode}\n{r.stdout[-6000:]}{r.stderr}"
        assert "SECRET" not in r.stdout + r.stderr
        return r.stdout

    def init(self):
        """The files name the provider without a host: tofu says where it would look for it, and there the mirror has it."""
        self("get")
        address = re.search(r"provider\[([^\]]+/openstack)\]", self("providers"))[1]
        platform = json.loads(self("version", "-json"))["platform"]
        place = self.mirror / address / version(PROVIDER) / platform
        if not place.exists():
            place.parent.mkdir(parents=True)
            place.symlink_to(programs(PROVIDER))
        self("init")

    def apply(self, *args):
        return self("apply", "-auto-approve", *args)

    def has_nothing_to_do(self):
        """The machines are as the files want them: the status would be 2."""
        self("plan", "-detailed-exitcode")

    def destroy(self):
        return self("destroy", "-auto-approve")
